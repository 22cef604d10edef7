/**
 * The chunks on this device in memory, so that a question is answered offline as the server would answer it. Rule: a
 * search sees the documents it is given and no other, and an empty scope gives an empty answer. A document is replaced
 * or removed whole: it has its own postings and its own matrix of unit vectors, so nothing is ever compacted.
 */

import { best, bm25, DEPTH, hybrid, indexedText, Postings, queryTerms, rounded } from "./ranking.ts";

/** Consecutive chunks of a document. `vectors` is chunks × dims, or null: found by words only. */
export interface Block {
  block: number;
  chunks: readonly { index: number; text: string }[];
  vectors: Float32Array | null;
}

/** One chunk found. Scores of `meaning` are cosines, of `words` BM25: not comparable with each other. */
export interface Hit {
  documentId: string;
  block: number;
  index: number;
  score: number;
}

interface Held {
  places: readonly { block: number; index: number }[];
  postings: Postings;
  /** A row of zeros where there is no vector. */
  matrix: Float32Array;
  hasVector: readonly boolean[];
}

export class Passages {
  readonly #held = new Map<string, Held>();

  constructor(private readonly dims: number) {}

  /** All blocks of a document, in place of those it had. */
  add(documentId: string, blocks: readonly Block[]): void {
    const rows = blocks.flatMap(({ block, chunks }) => chunks.map((chunk) => ({ block, chunk })));
    const matrix = new Float32Array(rows.length * this.dims);
    let begin = 0;
    for (const { chunks, vectors } of blocks) {
      const size = chunks.length * this.dims;
      if (vectors?.length === size) matrix.set(vectors, begin);
      begin += size;
    }
    this.#held.set(documentId, {
      places: rows.map(({ block, chunk }) => ({ block, index: chunk.index })),
      postings: Postings.ofTexts(rows.map(({ chunk }) => indexedText(chunk))),
      matrix,
      hasVector: rows.map((_, row) => makeUnit(matrix.subarray(row * this.dims, (row + 1) * this.dims))),
    });
  }

  remove(documentId: string): void {
    this.#held.delete(documentId);
  }

  /** The k chunks that fit a question best, by words and, where it has a vector, by meaning. */
  search(query: string, vector: Float32Array | null, documentIds: Iterable<string>, k: number): Hit[] {
    const scope = [...documentIds];
    const depth = Math.max(k, DEPTH);
    const words = this.words(query, scope, depth);
    if (!vector) return words.slice(0, k);
    const meaning = this.meaning(vector, scope, depth);
    const hits = new Map([...meaning, ...words].map((hit) => [place(hit), hit]));
    const scored = (hit: Hit): [string, number] => [place(hit), hit.score];
    const fused = hybrid(words.map(scored), meaning.map(scored), k);
    return fused.map(([key, score]) => ({ ...hits.get(key)!, score }));
  }

  /** The k chunks that a question's words fit best, by BM25. */
  words(query: string, documentIds: Iterable<string>, k: number): Hit[] {
    const scope = this.#within(documentIds);
    const scores = bm25(
      scope.map(([, held]) => held.postings),
      queryTerms(query),
    );
    return top(scope, scores, k, 0);
  }

  /** The k chunks nearest to a vector, by exact cosine. */
  meaning(vector: Float32Array, documentIds: Iterable<string>, k: number): Hit[] {
    if (vector.length !== this.dims) throw new RangeError(`The vector has not ${this.dims} dimensions.`);
    const unit = vector.slice();
    if (!makeUnit(unit)) return [];
    const scope = this.#within(documentIds);
    const scores = new Float64Array(scope.reduce((rows, [, held]) => rows + held.places.length, 0));
    let begin = 0;
    for (const [, { matrix, hasVector }] of scope) {
      for (let row = 0; row < hasVector.length; row++) {
        scores[begin + row] = hasVector[row] ? dot(matrix, row * this.dims, unit) : -Infinity;
      }
      begin += hasVector.length;
    }
    return top(scope, scores, k, -Infinity);
  }

  #within(documentIds: Iterable<string>): [string, Held][] {
    return [...new Set(documentIds)].flatMap((documentId): [string, Held][] => {
      const held = this.#held.get(documentId);
      return held ? [[documentId, held]] : [];
    });
  }
}

function place(hit: Hit): string {
  return `${hit.documentId}.${hit.block}.${hit.index}`;
}

/** The k best rows of a scope, whose documents' rows lie one after another. Where a chunk stands breaks a tie. */
function top(scope: readonly [string, Held][], scores: Float64Array, k: number, floor: number): Hit[] {
  const hits: Hit[] = [];
  let number = 0;
  let begin = 0;
  for (const at of best(scores, k, floor)) {
    while (at >= begin + scope[number]![1].places.length) begin += scope[number++]![1].places.length;
    const [documentId, held] = scope[number]!;
    hits.push({ documentId, ...held.places[at - begin]!, score: rounded(scores[at]!) });
  }
  const inOrder = (a: Hit, b: Hit): number =>
    b.score - a.score || compare(a.documentId, b.documentId) || a.block - b.block || a.index - b.index;
  return hits.sort(inOrder).slice(0, Math.max(k, 0));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** Stretch a vector to length 1; false, and zeros, where it points nowhere. */
function makeUnit(vector: Float32Array): boolean {
  const length = Math.sqrt(dot(vector, 0, vector));
  const points = Number.isFinite(length) && length > 0;
  for (let at = 0; at < vector.length; at++) vector[at] = points ? vector[at]! / length : 0;
  return points;
}

/** Four sums side by side: the processor need not wait for one addition to begin the next. */
function dot(matrix: Float32Array, begin: number, unit: Float32Array): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const fours = unit.length - (unit.length % 4);
  for (let at = 0; at < fours; at += 4) {
    a += matrix[begin + at]! * unit[at]!;
    b += matrix[begin + at + 1]! * unit[at + 1]!;
    c += matrix[begin + at + 2]! * unit[at + 2]!;
    d += matrix[begin + at + 3]! * unit[at + 3]!;
  }
  for (let at = fours; at < unit.length; at++) a += matrix[begin + at]! * unit[at]!;
  return a + b + c + d;
}
