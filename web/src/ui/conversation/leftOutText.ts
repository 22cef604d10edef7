import { list } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const KINDS = ["facts", "turns", "memories", "passages"] as const;

/** Return a text with the number of items of each kind that did not fit into a prompt. */
export function leftOutText(dropped: Record<(typeof KINDS)[number], readonly string[]>): string {
  const kinds = KINDS.filter((kind) => dropped[kind].length > 0);
  if (kinds.length === 0) return t("prompt.everythingFit");
  return t("prompt.leftOut", {
    list: list(kinds.map((kind) => t(`prompt.${kind}`, { n: dropped[kind].length }))),
  });
}
