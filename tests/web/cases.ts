/**
 * Run the shared cases of tests/conformance/ in TypeScript and report differences from the results that the Python code
 * recorded. The module needs no Node.js, so it also runs in a browser.
 */

import { chunk, documentText, join } from "../../web/src/core/documents/chunking.ts";
import { normalize, prepareForTokenizer, prepareForUnigram } from "../../web/src/core/text/normalization.ts";
import {
  PassageIndex,
  type PassageLocation,
  type PassageHit,
} from "../../web/src/core/documents/passageIndex.ts";
import { fold, tokenizeQuery, duplicateKey, tokenize } from "../../web/src/core/text/tokenize.ts";
import { topKWithTies, bm25Scores, Postings, roundScore } from "../../web/src/core/text/bm25.ts";
import { commonShare, fuse, languageShare } from "../../web/src/core/text/fusion.ts";
import { decode } from "../../web/src/core/schema/vector_codec.ts";

/** A text, or pieces to be joined, each with its number of repetitions. */
type Spelling = string | [piece: string, times: number][];

export interface NormalizationCase {
  name: string;
  text: Spelling;
  normalized: Spelling;
  forTokenizer: Spelling;
  forUnigram: Spelling;
}

export interface ChunkingCase {
  name: string;
  parts: { text: Spelling; page?: number | null; section?: string | null }[];
  units: number;
  chunks: [start: number, length: number, page: number | null, section: string | null][];
}

export interface VectorsCase {
  name: string;
  text: string;
  dims: number;
  vectors: number[] | null;
}

type Row = [place: string, score: number];
type Found = [place: string, score: number, ...also: string[]];

export type RankingCase = { name: string } & (
  | {
      kind: "terms";
      text: Spelling;
      folded: Spelling;
      duplicateKey: Spelling;
      terms: string[];
      queryTerms: string[];
    }
  | { kind: "bm25"; texts: Spelling[]; query: string; k: number; scores: number[]; best: number[] }
  | {
      kind: "language";
      question: { text: Spelling; tokens: number };
      passages: { text: Spelling; tokens: number }[];
      shares: number[];
      common: number;
    }
  | { kind: "fuse"; lists: Row[][]; weights: number[]; k: number; fused: Row[] }
  | {
      kind: "search";
      documents: Record<string, { block: number; chunks: [number, string][]; vectors: number[][] | null }[]>;
      scope: string[];
      query: string;
      vector: number[];
      k: number;
      words: Found[];
      meaning: Found[];
      both: Found[];
    }
);

export function runNormalization(cases: readonly NormalizationCase[]): string[] {
  return cases.flatMap((one) => {
    const text = normalize(spelled(one.text));
    return [
      ...difference(one.name, text, spelled(one.normalized)),
      ...difference(`${one.name}, again`, normalize(text), text),
      ...difference(`${one.name}, for the tokenizer`, prepareForTokenizer(text), spelled(one.forTokenizer)),
      ...difference(`${one.name}, for Unigram`, prepareForUnigram(text), spelled(one.forUnigram)),
    ];
  });
}

export function runChunking(cases: readonly ChunkingCase[]): string[] {
  return cases.flatMap((one) => {
    const parts = one.parts.map(({ text, page, section }) => ({
      text: spelled(text),
      page: page ?? undefined,
      section: section ?? undefined,
    }));
    const text = documentText(parts);
    const chunks = chunk(parts);
    const rows = chunks.map(({ start, text, page, section }) => [
      start,
      text.length,
      page ?? null,
      section ?? null,
    ]);
    const joined = join(chunks).replace(/\s/g, "") === text.replace(/\s/g, "");
    return [
      ...difference(`${one.name}, units`, text.length, one.units),
      ...difference(one.name, rows, one.chunks),
      ...difference(
        `${one.name}, is a slice`,
        chunks.filter((c) => !text.startsWith(c.text, c.start)),
        [],
      ),
      ...difference(`${one.name}, joined`, joined, true),
    ];
  });
}

export function runRanking(cases: readonly RankingCase[]): string[] {
  return cases.flatMap((one) => {
    if (one.kind === "terms") {
      const text = spelled(one.text);
      return [
        ...difference(`${one.name}, folded`, fold(text), spelled(one.folded)),
        ...difference(`${one.name}, duplicate key`, duplicateKey(text), spelled(one.duplicateKey)),
        ...difference(`${one.name}, terms`, tokenize(text), one.terms),
        ...difference(`${one.name}, query terms`, tokenizeQuery(text), one.queryTerms),
      ];
    }
    if (one.kind === "bm25") {
      const scores = bm25Scores([Postings.ofTexts(one.texts.map(spelled))], tokenizeQuery(one.query));
      return [
        ...difference(`${one.name}, scores`, [...scores].map(roundScore), one.scores),
        ...difference(`${one.name}, best`, topKWithTies(scores, one.k, 0), one.best),
      ];
    }
    if (one.kind === "fuse") {
      const fused = fuse(one.lists, one.weights, one.k);
      return difference(one.name, fused, one.fused);
    }
    if (one.kind === "language") {
      const shareOf = ({ text, tokens }: { text: Spelling; tokens: number }) =>
        languageShare(spelled(text), tokens);
      const shares = one.passages.map(shareOf);
      return [
        ...difference(`${one.name}, passages`, shares, one.shares),
        ...difference(`${one.name}, common`, commonShare(shareOf(one.question), shares), one.common),
      ];
    }
    const passages = new PassageIndex(one.vector.length);
    for (const [documentId, blocks] of Object.entries(one.documents))
      passages.add({ id: documentId, filename: "" }, blocks.map(toBlock)); // no question names them
    const vector = Float32Array.from(one.vector);
    return [
      ...difference(`${one.name}, words`, toFound(passages.words(one.query, one.scope, one.k)), one.words),
      ...difference(
        `${one.name}, meaning`,
        near(passages.meaning(vector, one.scope, one.k), one.meaning),
        one.meaning,
      ),
      ...difference(
        `${one.name}, both`,
        near(passages.search(one.query, vector, one.scope, one.k), one.both),
        one.both,
      ),
    ];
  });
}

function toBlock(block: { block: number; chunks: [number, string][]; vectors: number[][] | null }) {
  const chunks = block.chunks.map(([index, text]) => ({ index, text }));
  return { block: block.block, chunks, vectors: block.vectors && Float32Array.from(block.vectors.flat()) };
}

function toFound(results: readonly PassageHit[]): Found[] {
  const name = (place: PassageLocation): string => `${place.documentId}.${place.block}.${place.chunkIndex}`;
  return results.map((result) => [name(result), result.score, ...result.also.map(name)]);
}

/** Replace scores that differ from the expected ones by less than 1e-5, because numpy adds in float32. */
function near(results: readonly PassageHit[], expected: readonly Found[]): Found[] {
  return toFound(results).map(([key, score, ...also], at): Found => {
    const other = expected[at]?.[1] ?? Infinity;
    return [key, Math.abs(score - other) < 1e-5 ? other : score, ...also];
  });
}

export function runVectors(cases: readonly VectorsCase[]): string[] {
  return cases.flatMap(({ name, text, dims, vectors }) => difference(name, decoded(text, dims), vectors));
}

function decoded(text: string, dims: number): number[] | null {
  try {
    return [...decode(text, dims)];
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function spelled(text: Spelling): string {
  return typeof text === "string" ? text : text.map(([piece, times]) => piece.repeat(times)).join("");
}

function difference(name: string, actual: unknown, expected: unknown): string[] {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a === b) return [];
  let at = 0;
  while (a[at] === b[at]) at++;
  const shown = (text: string): string => text.slice(Math.max(0, at - 40), at + 80);
  return [`${name}: ${shown(a)} instead of ${shown(b)}`];
}
