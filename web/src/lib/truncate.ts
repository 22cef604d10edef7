const HALF = /[\ud800-\udbff]$/;

/** At most so many UTF-16 units of a text, cut between two letters: half an emoji is none, and no JSON. */
export function beginning(text: string, most: number): string {
  return text.slice(0, most).replace(HALF, "");
}
