import { dateTime } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Return how often a job has failed and when it is retried. `due` may be in the past. */
export function nextAttempt(n: number, due: string): string {
  const isInFuture = Date.parse(due) > Date.now();
  return isInFuture ? t("jobs.retryAt", { n, when: dateTime(due) }) : t("jobs.retrySoon", { n });
}
