/**
 * In-memory index of the chunks on this device. Searches in it give the same results as searches on the server. A
 * search covers only the given documents; without documents, it has no results. Each document has its own postings and
 * its own matrix of unit vectors. A document is replaced or removed as a whole, so the index needs no compaction.
 */

import { compareStrings } from "../../lib/compareStrings.ts";
import { findNamedDocuments } from "./filename_match.ts";
import { tokenizeQuery, duplicateKey } from "../text/tokenize.ts";
import { topKWithTies, bm25Scores, Postings, roundScore } from "../text/bm25.ts";
import {
  interleave,
  FOREIGN_PENALTY,
  FUSION_DEPTH,
  isForeignScript,
  isNearBest,
  fuseHybrid,
  VECTOR_WEIGHT,
} from "../text/fusion.ts";
import type { DocumentDoc, VectorEmbeddingDoc } from "../schema/rows.ts";
import { decode } from "../schema/vector_codec.ts";

/**
 * Consecutive chunks of a document. `vectors` has the shape chunks × dims. If it is null, only a search by words finds
 * the chunks.
 */
export interface Block {
  block: number;
  chunks: readonly Chunk[];
  vectors: Float32Array | null;
}

interface Chunk {
  index: number;
  text: string;
  page?: number | undefined;
  section?: string | undefined;
}

/** Location of a passage: document, block, chunk, page and section. */
export interface PassageLocation {
  documentId: string;
  filename: string;
  block: number;
  chunkIndex: number;
  page: number | null;
  section: string | null;
}

/**
 * A passage that matches a search. A text that occurs several times is one hit, and `also` lists its other locations.
 * Scores are cosines for `meaning`, BM25 scores for `words`, and shares of the best score for `search`. Scores of
 * different methods are not comparable.
 */
export interface PassageHit extends PassageLocation {
  text: string;
  score: number;
  also: PassageLocation[];
}

export interface PassageSearchResult {
  results: PassageHit[];
  /** Names of the documents that were searched. */
  searched: string[];
  /**
   * Whether the search also used meaning. False if the model is not available on this device, so that only words count.
   */
  byMeaning: boolean;
}

type Document = Pick<DocumentDoc, "id" | "filename">;

interface Held {
  document: Document;
  rows: readonly { block: number; chunk: Chunk }[];
  postings: Postings;
  /** Unit vectors of the rows. A row without a vector has zeros. */
  matrix: Float32Array;
  hasVector: readonly boolean[];
  isForeign: readonly boolean[];
  /** Maps row numbers to cached duplicate keys. Computing a hundred keys again would take as long as the search. */
  said: Map<number, string>;
}

export interface Hit {
  held: Held;
  row: number;
  score: number;
}

interface HybridOptions {
  /** The weight of meaning relative to words. */
  vectorWeight?: number;
  /** Whether the model knows scripts other than Latin. */
  isMultilingual?: boolean;
  /** The result of `byWords` for the same question and documents, if it is known. */
  wordHits?: readonly Hit[] | undefined;
}

/**
 * Convert a row to a block. Vectors of another model, which are not comparable, and damaged vectors are dropped, as if
 * the row were not embedded yet.
 */
export function toBlock(
  row: Pick<VectorEmbeddingDoc, "block" | "chunks" | "model" | "dims" | "embedding">,
  model: string,
): Block {
  const { block, chunks, dims, embedding } = row;
  return {
    block,
    chunks,
    vectors: embedding !== null && row.model === model ? decoded(embedding, dims) : null,
  };
}

function decoded(embedding: string, dims: number): Float32Array | null {
  try {
    return decode(embedding, dims);
  } catch {
    return null;
  }
}

export class PassageIndex {
  readonly #held = new Map<string, Held>();

  constructor(private readonly dims: number) {}

  /** Index all blocks of a document, replacing its earlier blocks. */
  add(document: Document, blocks: readonly Block[]): void {
    const rows = blocks.flatMap(({ block, chunks }) => chunks.map((chunk) => ({ block, chunk })));
    const matrix = new Float32Array(rows.length * this.dims);
    let begin = 0;
    for (const { chunks, vectors } of blocks) {
      const size = chunks.length * this.dims;
      if (vectors?.length === size) matrix.set(vectors, begin);
      begin += size;
    }
    this.#held.set(document.id, {
      document,
      rows,
      postings: Postings.ofTexts(rows.map(({ chunk }) => chunk.text)),
      matrix,
      hasVector: rows.map((_, row) => makeUnit(matrix.subarray(row * this.dims, (row + 1) * this.dims))),
      isForeign: rows.map(({ chunk }) => isForeignScript(chunk.text)),
      said: new Map(),
    });
  }

  remove(documentId: string): void {
    this.#held.delete(documentId);
  }

  /** Return the k best passages for a question, by words and, if there is a query vector, by meaning. */
  search(
    query: string,
    vector: Float32Array | null,
    documentIds: Iterable<string>,
    k: number,
    { vectorWeight = VECTOR_WEIGHT, isMultilingual = false, wordHits }: HybridOptions = {},
  ): PassageHit[] {
    if (!vector) return this.words(query, documentIds, k);
    const depth = Math.max(k, FUSION_DEPTH);
    const foreignLast = !isMultilingual && !isForeignScript(query);
    const all = this.#within(documentIds);
    const find = (scope: readonly Held[]): Hit[] => {
      // Documents may have changed or been removed since `wordHits` were found.
      const isCurrent = scope === all && wordHits?.every(({ held }) => all.includes(held));
      const words = isCurrent ? wordHits! : byWords(scope, query, depth);
      const meaning = this.#byMeaning(scope, vector, depth, foreignLast);
      const hits = new Map([...meaning, ...words].map((hit) => [key(hit), hit]));
      const scored = (hit: Hit): [string, number] => [key(hit), hit.score];
      const fused = fuseHybrid(words.map(scored), meaning.map(scored), depth, vectorWeight);
      return fused.map(([key, score]) => ({ ...hits.get(key)!, score }));
    };
    return shownOnce(namedByTurns(query, all, find), k);
  }

  /** Return the best rows for the words of a question, as `search` needs them for k results. */
  byWords(query: string, documentIds: Iterable<string>, k: number): Hit[] {
    return byWords(this.#within(documentIds), query, Math.max(k, FUSION_DEPTH));
  }

  /** Return the k best passages for the words of a question, by BM25. */
  words(query: string, documentIds: Iterable<string>, k: number): PassageHit[] {
    const find = (scope: readonly Held[]) => byWords(scope, query, Math.max(k, FUSION_DEPTH));
    return shownOnce(namedByTurns(query, this.#within(documentIds), find), k);
  }

  /** Return the k passages nearest to a vector, by exact cosine similarity. */
  meaning(vector: Float32Array, documentIds: Iterable<string>, k: number): PassageHit[] {
    return shownOnce(this.#byMeaning(this.#within(documentIds), vector, Math.max(k, FUSION_DEPTH)), k);
  }

  #byMeaning(scope: readonly Held[], vector: Float32Array, depth: number, foreignLast = false): Hit[] {
    if (vector.length !== this.dims) throw new RangeError(`The vector has not ${this.dims} dimensions.`);
    const unit = vector.slice();
    if (!makeUnit(unit)) return [];
    const scores = new Float64Array(scope.reduce((rows, held) => rows + held.rows.length, 0));
    let begin = 0;
    for (const { matrix, hasVector, isForeign } of scope) {
      for (let row = 0; row < hasVector.length; row++) {
        const penalty = foreignLast && isForeign[row] ? FOREIGN_PENALTY : 0;
        scores[begin + row] = hasVector[row] ? dot(matrix, row * this.dims, unit) - penalty : -Infinity;
      }
      begin += hasVector.length;
    }
    return top(scope, scores, depth, -Infinity);
  }

  #within(documentIds: Iterable<string>): Held[] {
    return [...new Set(documentIds)].flatMap((documentId) => this.#held.get(documentId) ?? []);
  }
}

/**
 * If the query names documents, interleave two lists of hits: those in the named documents, and those in all documents,
 * because the question may also concern others. The list of the named documents comes first, unless it is uncertain
 * that the query names them and other documents score much higher. A hit in both lists keeps the higher score.
 */
function namedByTurns(query: string, scope: readonly Held[], find: (scope: readonly Held[]) => Hit[]): Hit[] {
  const all = find(scope);
  const asked = findNamedDocuments(
    query,
    scope.map(({ document }) => document),
  );
  if (asked.documents.length === 0 || asked.documents.length === scope.length) return all;
  const named = new Set(asked.documents);
  const own = find(scope.filter(({ document }) => named.has(document)));
  const hits = new Map([...own, ...all].sort((a, b) => a.score - b.score).map((hit) => [key(hit), hit]));
  const every = all.map((hit): [string, number] => [key(hit), hit.score]);
  const ownFirst = asked.isCertain || !own[0] || isNearBest(key(own[0]), every);
  const [first, second] = ownFirst ? [own, all] : [all, own];
  return interleave(first.map(key), second.map(key)).map((key) => hits.get(key)!);
}

function byWords(scope: readonly Held[], query: string, depth: number): Hit[] {
  const scores = bm25Scores(
    scope.map((held) => held.postings),
    tokenizeQuery(query),
  );
  return top(scope, scores, depth, 0);
}

function key(hit: Hit): string {
  return `${hit.held.document.id}#${hit.row}`;
}

/**
 * Return the best rows of a scope. `scores` contains the scores of the rows of all documents, in order. Ties are
 * ordered by location.
 */
function top(scope: readonly Held[], scores: Float64Array, depth: number, floor: number): Hit[] {
  const hits: Hit[] = [];
  let number = 0;
  let begin = 0;
  for (const at of topKWithTies(scores, depth, floor)) {
    while (at >= begin + scope[number]!.rows.length) begin += scope[number++]!.rows.length;
    hits.push({ held: scope[number]!, row: at - begin, score: roundScore(scores[at]!) });
  }
  return hits.sort(inOrder).slice(0, Math.max(depth, 0));
}

function inOrder(a: Hit, b: Hit): number {
  return b.score - a.score || compareStrings(a.held.document.id, b.held.document.id) || comparePlaces(a, b);
}

function comparePlaces(a: Hit, b: Hit): number {
  const [one, other] = [a.held.rows[a.row]!, b.held.rows[b.row]!];
  return one.block - other.block || one.chunk.index - other.chunk.index;
}

/** Merge hits with the same text: return the best hit of each, with the other locations in `also`. */
function shownOnce(hits: readonly Hit[], k: number): PassageHit[] {
  const groups = new Map<string, [Hit, ...Hit[]]>();
  for (const hit of hits) {
    const text = said(hit);
    const group = groups.get(text);
    if (group) group.push(hit);
    else groups.set(text, [hit]);
  }
  return [...groups.values()].slice(0, Math.max(k, 0)).map(([first, ...others]) => {
    const { text } = first.held.rows[first.row]!.chunk;
    return { ...place(first), text, score: first.score, also: others.map(place) };
  });
}

function said({ held, row }: Hit): string {
  let text = held.said.get(row);
  if (text === undefined) held.said.set(row, (text = duplicateKey(held.rows[row]!.chunk.text)));
  return text;
}

function place({ held, row }: Hit): PassageLocation {
  const { block, chunk } = held.rows[row]!;
  const { id: documentId, filename } = held.document;
  const { index: chunkIndex, page = null, section = null } = chunk;
  return { documentId, filename, block, chunkIndex, page, section };
}

/** Scale a vector to length 1. If its length is not finite and positive, set the vector to zero and return false. */
function makeUnit(vector: Float32Array): boolean {
  const length = Math.sqrt(dot(vector, 0, vector));
  const points = Number.isFinite(length) && length > 0;
  for (let at = 0; at < vector.length; at++) vector[at] = points ? vector[at]! / length : 0;
  return points;
}

/**
 * Return the dot product of a row and a vector. Four independent sums let the processor overlap the
 * additions.
 */
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
