/** Compare by UTF-16 units, for `sort`. For ids and times this is the server's order. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
