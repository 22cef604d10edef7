/**
 * Find the documents that a message names. This module mirrors server/vademecum/model/documents/filename_match.py,
 * which explains the rules; both are tested with tests/conformance/filename_match.json.
 */

import { fold, STOP_WORDS } from "../text/tokenize.ts";

const WORD = /[\p{L}\p{N}]+/gu;
const EXTENSION = /\.[A-Za-z0-9]{1,8}$/u;
const [NOT_NAMED, UNCERTAIN, CERTAIN] = [0, 1, 2];

/** Return the documents that the message names, best match first. */
export function matchFilenames<Document extends { filename: string }>(
  message: string,
  documents: readonly Document[],
): Document[] {
  const words = splitWords(message);
  const withoutExtension = splitWords(message.replace(EXTENSION, ""));
  return documents
    .map((document) => ({ document, rank: rankMatch(words, withoutExtension, document.filename) }))
    .filter((match): match is { document: Document; rank: Rank } => match.rank !== null)
    .sort((a, b) => a.rank[0] - b.rank[0] || a.rank[1] - b.rank[1])
    .map(({ document }) => document);
}

export interface NamedDocuments<Document> {
  documents: Document[];
  /** Whether the message names one of the documents by several words or with its extension. */
  isCertain: boolean;
}

/** Return the documents whose name the message contains. */
export function findNamedDocuments<Document extends { filename: string }>(
  message: string,
  documents: readonly Document[],
): NamedDocuments<Document> {
  const words = splitWords(message);
  const certainties = documents.map(({ filename }) => certainty(words, filename));
  return {
    documents: documents.filter((_, at) => certainties[at] !== NOT_NAMED),
    isCertain: certainties.includes(CERTAIN),
  };
}

/**
 * Return how certain it is that the words name the file. A short name such as that of `a.txt` counts only with its
 * extension, because many messages contain the word "a".
 */
function certainty(words: readonly string[], filename: string): number {
  const name = splitWords(filename.replace(EXTENSION, ""));
  const full = splitWords(filename);
  if (full.length && contains(words, full)) return full.length > 1 ? CERTAIN : UNCERTAIN;
  const distinctive = new Set(name.filter((word) => [...word].length > 2 && !STOP_WORDS.has(word)));
  if (!distinctive.size || !name.every((word) => words.includes(word))) return NOT_NAMED;
  return distinctive.size > 1 ? CERTAIN : UNCERTAIN;
}

/**
 * Rank of a match; a lower rank is better. The first number is the kind of match. The second number compares matches of
 * the same kind by the length of the name: longer names first, but shorter names first if the message contains only a
 * part of the name.
 */
type Rank = readonly [number, number];

function rankMatch(
  words: readonly string[],
  withoutExtension: readonly string[],
  filename: string,
): Rank | null {
  const name = splitWords(filename.replace(EXTENSION, ""));
  if (!name.length || !words.length) return null;
  if (equal(withoutExtension, name)) return [0, 0];
  if (contains(words, name)) return [1, -name.length];
  if (name.every((word) => words.includes(word))) return [2, -name.length];
  if (withoutExtension.length && withoutExtension.every((word) => name.includes(word)))
    return [3, name.length];
  return null;
}

function splitWords(text: string): string[] {
  return fold(text).match(WORD) ?? [];
}

function contains(words: readonly string[], phrase: readonly string[]): boolean {
  return words.some((_, at) => equal(words.slice(at, at + phrase.length), phrase));
}

function equal(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((word, at) => word === b[at]);
}
