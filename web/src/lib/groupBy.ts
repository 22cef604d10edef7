/** The rows by what `key` says of each, in the order in which they come. */
export function groupBy<Key, Row>(rows: readonly Row[], key: (row: Row) => Key): ReadonlyMap<Key, Row[]> {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const group = groups.get(key(row));
    if (group) group.push(row);
    else groups.set(key(row), [row]);
  }
  return groups;
}
