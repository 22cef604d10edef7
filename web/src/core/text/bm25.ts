/**
 * Rank texts with BM25, using postings. This module mirrors server/vademecum/model/text/bm25.py; both are tested with
 * tests/conformance/ranking.json.
 */

import { tokenize } from "./tokenize.ts";

/** The usual constants of BM25: K1 limits the effect of repeated terms, and B sets the effect of a text's length. */
const K1 = 1.2;
const B = 0.75;
/**
 * Number of digits to which scores are rounded before they are compared, so that floating-point errors do not decide an
 * order.
 */
const SCORE_DIGITS = 6;
const MAX_COUNT = 0xffff;

/** An inverted index: the rows that contain the term with ordinal i are `rows.slice(starts[i], starts[i + 1])`. */
export class Postings {
  /** Number of terms in all rows, counting repeats. */
  readonly total: number;

  private constructor(
    private readonly ordinals: ReadonlyMap<string, number>,
    private readonly starts: Uint32Array,
    private readonly rows: Uint32Array,
    private readonly counts: Uint16Array,
    /** Number of terms in each row, counting repeats. */
    readonly lengths: Float64Array,
  ) {
    this.total = sum(lengths);
  }

  /** Build postings from texts, one per row. */
  static ofTexts(texts: readonly string[]): Postings {
    const found = new Map<string, [row: number, count: number][]>();
    const lengths = new Float64Array(texts.length);
    for (const [row, text] of texts.entries()) {
      for (const [term, times] of countTerms(text)) {
        const entry: [number, number] = [row, Math.min(times, MAX_COUNT)];
        lengths[row]! += entry[1];
        const entries = found.get(term);
        if (entries) entries.push(entry);
        else found.set(term, [entry]);
      }
    }
    const ordinals = new Map([...found.keys()].map((term, ordinal) => [term, ordinal]));
    const starts = new Uint32Array(found.size + 1);
    for (const [ordinal, entries] of [...found.values()].entries()) {
      starts[ordinal + 1] = starts[ordinal]! + entries.length;
    }
    const flat = [...found.values()].flat();
    const rows = Uint32Array.from(flat, ([row]) => row);
    const counts = Uint16Array.from(flat, ([, count]) => count);
    return new Postings(ordinals, starts, rows, counts, lengths);
  }

  /** Return the rows that contain a term, and how often each row contains it. */
  find(term: string): { rows: Uint32Array; counts: Uint16Array } {
    const ordinal = this.ordinals.get(term);
    const [begin, end] = ordinal === undefined ? [0, 0] : [this.starts[ordinal], this.starts[ordinal + 1]];
    return { rows: this.rows.subarray(begin, end), counts: this.counts.subarray(begin, end) };
  }
}

function countTerms(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const term of tokenize(text)) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}

/**
 * Return the BM25 score of each row of all parts, in order. Term statistics include only these rows, so documents
 * outside the scope of a search do not influence the order of its results.
 */
export function bm25Scores(parts: readonly Postings[], queryTerms: readonly string[]): Float64Array {
  const rows = sum(parts.map((part) => part.lengths.length));
  const average = sum(parts.map((part) => part.total)) / rows || 1;
  const scores = new Float64Array(rows);
  for (const term of queryTerms) {
    const matches = parts.map((part) => part.find(term));
    const frequency = sum(matches.map((match) => match.rows.length));
    const idf = Math.log1p((rows - frequency + 0.5) / (frequency + 0.5));
    let begin = 0;
    for (const [number, match] of matches.entries()) {
      const { lengths } = parts[number]!;
      for (let at = 0; at < match.rows.length; at++) {
        const row = match.rows[at]!;
        const count = match.counts[at]!;
        const damping = K1 * (1 - B + (B * lengths[row]!) / average);
        scores[begin + row]! += (idf * count * (K1 + 1)) / (count + damping);
      }
      begin += lengths.length;
    }
  }
  return scores;
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}

/** Round a score for comparison. Halves are rounded to the even neighbor, as NumPy does. */
export function roundScore(score: number): number {
  const scaled = score * 10 ** SCORE_DIGITS;
  const nearest = Math.round(scaled);
  const isOddHalf = nearest - scaled === 0.5 && nearest % 2 !== 0;
  return (isOddHalf ? nearest - 1 : nearest) / 10 ** SCORE_DIGITS;
}

/**
 * Return the positions of the k highest scores above `floor`, and of all scores that tie with the lowest of these. The
 * positions are in no particular order.
 */
export function topKWithTies(scores: Float64Array, k: number, floor = -Infinity): number[] {
  const above: number[] = [];
  for (let at = 0; at < scores.length; at++) if (scores[at]! > floor) above.push(at);
  if (above.length <= k) return above;
  if (k < 1) return [];
  const rounded = Float64Array.from(above, (at) => roundScore(scores[at]!));
  const threshold = rounded.slice().sort()[above.length - k]!;
  return above.filter((_, at) => rounded[at]! >= threshold);
}
