/** A case's text: a string, or pieces and how many times each is written. */
export type Text = string | [piece: string, times: number][];

export function spelled(text: Text): string {
  return typeof text === "string" ? text : text.map(([piece, times]) => piece.repeat(times)).join("");
}
