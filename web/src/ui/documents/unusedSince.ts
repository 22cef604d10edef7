import { month } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Return a text that says how long `n` documents have not been used. `since` is the last use of any of them. */
export function unusedSince(n: number, since: string): string {
  const isThisMonth = month(since) === month(new Date().toISOString());
  return isThisMonth ? t("documents.unused", { n }) : t("documents.unusedSince", { n, since: month(since) });
}
