/** Match texts that contain all words of a query, ignoring case and accents. */

const MARKS = /\p{M}+/gu;

/** Return the text in lower case without accents. */
export function foldForMatch(text: string): string {
  return text.normalize("NFKD").replace(MARKS, "").toLowerCase();
}

/** Return the words of a query, folded for matching. */
export function queryWords(query: string): string[] {
  return foldForMatch(query).split(/\s+/u).filter(Boolean);
}

/** Return a function that tests whether a text contains every word of `query`. */
export function createMatcher(query: string): (text: string) => boolean {
  const words = queryWords(query);
  return (text) => {
    const held = foldForMatch(text);
    return words.every((word) => held.includes(word));
  };
}
