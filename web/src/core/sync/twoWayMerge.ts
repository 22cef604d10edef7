/**
 * Two versions of a row with no common past: the device's and the server's, after a restore from a backup, or when
 * two devices made the same row. Sets are united, counts take the larger, the other fields come from the version
 * with the newer `updatedAt`. Nothing that either side has is lost but an older text.
 */

export type Row = Record<string, unknown> & { _deleted?: boolean };

const SETS = ["activeSessions", "sessionIds"];
const COUNTS = ["accessCount"];
const TIMES = ["updatedAt", "lastAccessedAt"];

export function mergeTwoWay(ours: Row, theirs: Row): Row {
  if (theirs._deleted || theirs["syncError"]) return theirs; // deletion wins; a refused row keeps its mark
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
