/** Group rows by key. Groups and their rows keep the order of the input. */
export function groupBy<Key, Row>(rows: readonly Row[], key: (row: Row) => Key): ReadonlyMap<Key, Row[]> {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const group = groups.get(key(row));
    if (group) group.push(row);
    else groups.set(key(row), [row]);
  }
  return groups;
}
