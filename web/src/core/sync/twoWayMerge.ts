/**
 * Merge the device's and the server's version of a row without a common base. This is necessary after a restore from a
 * backup, or when two devices created the same row. Take the union of sets and the maximum of counts and times. Take
 * all other fields from the version with the newer `updatedAt`, so that only older values of these fields are lost.
 */

export type Row = Record<string, unknown> & { _deleted?: boolean };

const SETS = ["activeSessions", "sessionIds"];
const COUNTS = ["accessCount"];
const TIMES = ["updatedAt", "lastAccessedAt"];

export function mergeTwoWay(ours: Row, theirs: Row): Row {
  // A delete wins, and a row that the server rejected keeps its `syncError`.
  if (theirs._deleted || theirs["syncError"]) return theirs;
  const oursIsNewer = String(ours["updatedAt"] ?? "") > String(theirs["updatedAt"] ?? "");
  const united: Row = { ...(oursIsNewer ? ours : theirs) };
  delete united["syncError"];
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
  return united;
}
