const HALF_SURROGATE = /[\ud800-\udbff]$/;

/** At most so many UTF-16 units of a text, cut between two letters: half an emoji is none, and no JSON. */
export function truncate(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(HALF_SURROGATE, "");
}
