/** Whether a text has all the words that somebody is looking for, however they are written. */

const MARKS = /\p{M}+/gu;

/** Without case and accents. */
export function foldForMatch(text: string): string {
  return text.normalize("NFKD").replace(MARKS, "").toLowerCase();
}

/** The words of what somebody types, as they are looked for. */
export function queryWords(query: string): string[] {
  return foldForMatch(query).split(/\s+/u).filter(Boolean);
}

/** A test for many texts: every word of `query` must stand in the text. */
export function createMatcher(query: string): (text: string) => boolean {
  const words = queryWords(query);
  return (text) => {
    const held = foldForMatch(text);
    return words.every((word) => held.includes(word));
  };
}
