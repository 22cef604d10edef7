/** The order of a list in which what was used last comes first. */

import { compareStrings } from "../../lib/compareStrings.ts";
import type { SessionDoc } from "../schema/rows.ts";

type Dated = Pick<SessionDoc, "createdAt" | "updatedAt">;

/** Clocks of two devices may differ by so much, and nobody need care. */
const DIFFER_MS = 86_400_000;

/**
 * A time that is far ahead came from a clock that was wrong: it would stay on top for ever. Such a row is as old as it
 * says it was begun, or, where that is ahead, too, older than all others.
 */
export function sortByLastUse<Row extends Dated>(rows: readonly Row[], now = Date.now()): Row[] {
  const latest = new Date(now + DIFFER_MS).toISOString();
  const of = ({ createdAt, updatedAt }: Row) => [updatedAt, createdAt].find((at) => at < latest) ?? "";
  return rows.toSorted((a, b) => compareStrings(of(b), of(a)));
}
