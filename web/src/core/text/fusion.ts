/**
 * Combine ranked lists. This module mirrors server/vademecum/model/text/fusion.py, which explains the rules; both are
 * tested with tests/conformance/ranking.json.
 */

/** Number of hits of each list that are fused. */
export const FUSION_DEPTH = 100;
/** Share of the best score that a hit needs to count as near the best. */
const NEAR_BEST = 0.6;

/** The weight of vector search relative to keyword search for a model without fitted weights. */
export const VECTOR_WEIGHT = 1;
/** A text with more UTF-8 bytes per character is mainly in another script than Latin. */
const MAX_BYTES_PER_CHARACTER = 1.5;
/** Subtracted from the cosines of passages in such scripts, so that they follow all others. */
export const FOREIGN_PENALTY = 3;
/**
 * Limit of word pieces per word or punctuation mark. An English model stays below it for English text and exceeds it for
 * other languages.
 */
const MAX_PIECES_PER_WORD = 1.3;
/** Share of the weight of vector search in such a language. */
const FOREIGN_SHARE = 0.4;
/** The number of passages whose language is compared with that of the question. */
export const LANGUAGE_SAMPLE = 10;

/** A word, or an ASCII or general punctuation mark. Classes such as `\w` differ in Python. */
const WORD_OR_MARK =
  /[!-/:-@[-`{-~\u00ab\u00bb\u2010-\u2027\u2030-\u205e]|[^\x00-\x20\x7f-\xa0\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff!-/:-@[-`{-~\u00ab\u00bb\u2010-\u2027\u2030-\u205e]+/gu;

type ScoredKey = readonly [key: string, score: number];

/** Return whether a text is mainly in another script than Latin, for which an English model's vector is meaningless. */
export function isForeignScript(text: string): boolean {
  const bytes = new TextEncoder().encode(text).length;
  return bytes > text.length && bytes > MAX_BYTES_PER_CHARACTER * [...text].length;
}

/**
 * Return the share of its weight that an English model's vector of a text deserves: 1, `FOREIGN_SHARE` or 0. It is 0 in
 * a foreign script, and `FOREIGN_SHARE` if the model splits the text into more than `MAX_PIECES_PER_WORD` word pieces
 * (`tokens`) per word and punctuation mark.
 */
export function languageShare(text: string, tokens: number): number {
  if (isForeignScript(text)) return 0;
  const words = text.match(WORD_OR_MARK)?.length ?? 0;
  return tokens <= MAX_PIECES_PER_WORD * words ? 1 : FOREIGN_SHARE;
}

/**
 * Return the share of the vector weight for a question and the passages that it meets, of which there is at least one.
 * A share below 1 needs agreement of the question and most passages.
 */
export function commonShare(question: number, passages: readonly number[]): number {
  const ordered = passages.toSorted((a, b) => a - b);
  return Math.max(question, ordered[Math.floor(ordered.length / 2)]!);
}

/** Return whether the score of `key` is at least `NEAR_BEST` times the best score. */
export function isNearBest(key: string, hits: readonly ScoredKey[]): boolean {
  const best = hits.reduce((most, [, score]) => Math.max(most, score), 0);
  return (new Map(hits).get(key) ?? 0) >= NEAR_BEST * best;
}

/** Return the keys of both lists alternately, without duplicates, starting with `first`. */
export function interleave(first: readonly string[], second: readonly string[]): string[] {
  const longest = Math.max(first.length, second.length);
  const pairs = Array.from({ length: longest }, (_, at) => [first[at], second[at]]);
  return [...new Set(pairs.flat().filter((key) => key !== undefined))];
}

/** Rescale scores so that the best is 1 and `zero`, by default the lowest score, is 0. */
export function rescale(hits: readonly ScoredKey[], zero?: number): [key: string, score: number][] {
  const scores = hits.map(([, score]) => score);
  const lowest = zero ?? Math.min(...scores);
  const span = Math.max(...scores) - lowest;
  return hits.map(([key, score]) => [key, span > 0 ? (score - lowest) / span : 1]);
}

/**
 * Return the k keys with the highest weighted mean score. A list that does not contain a key counts as a score of 0.
 * Keys with equal scores stay in the order in which they first occur, list by list.
 */
export function fuse(
  lists: readonly (readonly ScoredKey[])[],
  weights: readonly number[],
  k: number,
): [key: string, score: number][] {
  if (lists.length !== weights.length) throw new RangeError("Each list needs a weight.");
  const total = weights.reduce((sum, weight) => sum + weight, 0) || 1;
  const scores = new Map<string, number>();
  for (const [number, hits] of lists.entries()) {
    const weight = weights[number]!;
    if (weight <= 0) continue;
    for (const [key, score] of hits) scores.set(key, (scores.get(key) ?? 0) + (weight * score) / total);
  }
  const rounded = (score: number): number => Number(score.toFixed(12));
  const ordered = [...scores].sort(([, a], [, b]) => rounded(b) - rounded(a));
  return ordered.slice(0, Math.max(k, 0));
}

/**
 * Fuse keyword hits (BM25 scores) and vector hits (cosines). Each list is sorted best first and has up to
 * `FUSION_DEPTH` hits. A vector hit with the foreign penalty counts 0. Return the k best.
 */
export function fuseHybrid(
  keywordHits: readonly ScoredKey[],
  vectorHits: readonly ScoredKey[],
  k: number,
  vectorWeight = VECTOR_WEIGHT,
): [key: string, score: number][] {
  const near = vectorHits.filter(([, score]) => score >= -1);
  const foreign = vectorHits.slice(near.length).map(([key]) => [key, 0] as const);
  return fuse([rescale(keywordHits, 0), [...rescale(near), ...foreign]], [1, vectorWeight], k);
}
