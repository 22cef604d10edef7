import { dateTime } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Return a text that says how often a job has failed and when it is retried. A `due` in the past means soon. */
export function nextAttempt(n: number, due: string): string {
  const isInFuture = Date.parse(due) > Date.now();
  return isInFuture ? t("jobs.retryAt", { n, when: dateTime(due) }) : t("jobs.retrySoon", { n });
}
