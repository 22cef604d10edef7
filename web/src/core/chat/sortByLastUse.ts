/** Sort rows by last use, the most recent first. */

import { compareStrings } from "../../lib/compareStrings.ts";
import type { SessionDoc } from "../schema/rows.ts";

type Dated = Pick<SessionDoc, "createdAt" | "updatedAt">;

/** Accepted clock difference between two devices: one day. */
const MAX_CLOCK_ERROR_MS = 86_400_000;

/**
 * Sort rows by `updatedAt`, newest first. A time in the future comes from a wrong clock and would keep its row on top
 * forever. For such a row use `createdAt`, or sort the row last if `createdAt` is in the future, too.
 */
export function sortByLastUse<Row extends Dated>(rows: readonly Row[], now = Date.now()): Row[] {
  const latest = new Date(now + MAX_CLOCK_ERROR_MS).toISOString();
  const of = ({ createdAt, updatedAt }: Row) => [updatedAt, createdAt].find((at) => at < latest) ?? "";
  return rows.toSorted((a, b) => compareStrings(of(b), of(a)));
}
