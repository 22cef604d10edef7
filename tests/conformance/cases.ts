/** A case's text: a string, or pieces to be joined, each with its number of repetitions. */
export type Text = string | [piece: string, times: number][];

export function spelled(text: Text): string {
  return typeof text === "string" ? text : text.map(([piece, times]) => piece.repeat(times)).join("");
}
