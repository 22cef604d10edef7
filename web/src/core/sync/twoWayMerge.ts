/**
 * Merge the device's and the server's version of a row without a common base. This is necessary after a restore from a
 * backup, or when two devices created the same row. Take the union of sets and the maximum of counts and times. Take
 * all other fields from the version with the newer `updatedAt`, so that only older values of these fields are lost. Times
 * are capped at the present, so that a clock that is ahead gives no advantage. The server merges in the same way
 * (`merge_without_base` in server/vademecum/model/sync/merge.py).
 */

export type Row = Record<string, unknown> & { _deleted?: boolean };

const SETS = ["activeSessions", "sessionIds"];
const COUNTS = ["accessCount"];
const TIMES = ["updatedAt", "lastAccessedAt"];
const LAST_MOMENT = Date.parse("9999-12-31T23:59:59.999Z"); // the last time that a timestamp can express

export function mergeTwoWay(ours: Row, theirs: Row, now = new Date().toISOString()): Row {
  // A delete wins, and a row that the server rejected keeps its `syncError`.
  if (theirs._deleted || theirs["syncError"]) return theirs;
  const { syncError: _, ...mine } = ours;
  const editedAt = (row: Row) => [String(row["updatedAt"] ?? ""), now].sort()[0]!;
  // The row may have been revived since this device received the tombstone.
  if (ours._deleted) return editedAt(ours) < editedAt(theirs) ? theirs : ours;
  const united: Row = { ...(editedAt(ours) > editedAt(theirs) ? mine : theirs) };
  for (const name of SETS) {
    const [a, b] = [theirs[name], ours[name]];
    if (Array.isArray(a) && Array.isArray(b)) united[name] = [...new Set([...a, ...b])];
  }
  for (const name of COUNTS) {
    const [a, b] = [theirs[name], ours[name]];
    if (typeof a === "number" && typeof b === "number") united[name] = Math.max(a, b);
  }
  for (const name of TIMES) {
    const [a, b] = [theirs[name], ours[name]];
    if (typeof a === "string" && typeof b === "string") united[name] = a > b ? a : b;
  }
  // The row differs from both versions, so it needs another time for devices to see the difference.
  if (!isEqual(united, mine) && !isEqual(united, theirs)) {
    const at = Date.parse(String(united["updatedAt"]));
    if (at < LAST_MOMENT) united["updatedAt"] = new Date(at + 1).toISOString();
  }
  return united;
}

function isEqual(one: Row, other: Row): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]));
}
