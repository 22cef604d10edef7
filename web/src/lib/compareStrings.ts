/** For `sort`: by UTF-16 units, which for ids and times is how the server orders them. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
