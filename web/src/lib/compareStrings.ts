/** Compare strings by UTF-16 code units, for `sort`. For ids and times, the order is the same as on the server. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
