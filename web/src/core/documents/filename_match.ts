/**
 * Which documents does a message name? For the question "Found 'lease.pdf'. Include it?", and for search: who names one
 * that is open asks about it. The rules are those of server/vademecum/model/documents/filename_match.py: case, accents and extension do not
 * matter; a name matches as a whole, or by all of its words, and a bare name finds also the files whose words include all
 * of its own.
 */

import { fold, STOP_WORDS } from "../text/tokenize.ts";

const WORD = /[\p{L}\p{N}]+/gu;
const EXTENSION = /\.[A-Za-z0-9]{1,8}$/u;

/** Those that the message names, best first. */
export function named<Document extends { filename: string }>(
  message: string,
  documents: readonly Document[],
): Document[] {
  const said = words(message);
  const bare = words(message.replace(EXTENSION, ""));
  return documents
    .map((document) => ({ document, rank: rank(said, bare, document.filename) }))
    .filter((found): found is { document: Document; rank: Rank } => found.rank !== null)
    .sort((a, b) => a.rank[0] - b.rank[0] || a.rank[1] - b.rank[1])
    .map(({ document }) => document);
}

/** How surely a document is named. One word alone may just mean what it says (`test.md` in "how do I test this"). */
const [NOT, PERHAPS, SURELY] = [0, 1, 2];

export interface AskedAbout<Document> {
  documents: Document[];
  /** One of them is named by several words, or with its extension. */
  surely: boolean;
}

/** Those whose name is in the message, whatever else is. */
export function askedAbout<Document extends { filename: string }>(
  message: string,
  documents: readonly Document[],
): AskedAbout<Document> {
  const said = words(message);
  const namings = documents.map(({ filename }) => naming(said, filename));
  return { documents: documents.filter((_, at) => namings[at] !== NOT), surely: namings.includes(SURELY) };
}

/** `a.txt` is named by nothing shorter: every other message has "a". */
function naming(said: readonly string[], filename: string): number {
  const name = words(filename.replace(EXTENSION, ""));
  const full = words(filename);
  if (full.length && contains(said, full)) return full.length > 1 ? SURELY : PERHAPS;
  const telling = new Set(name.filter((word) => [...word].length > 2 && !STOP_WORDS.has(word)));
  if (!telling.size || !name.every((word) => said.includes(word))) return NOT;
  return telling.size > 1 ? SURELY : PERHAPS;
}

/** Lower is better; longer names come before shorter. */
type Rank = readonly [number, number];

function rank(said: readonly string[], bare: readonly string[], filename: string): Rank | null {
  const name = words(filename.replace(EXTENSION, ""));
  if (!name.length || !said.length) return null;
  if (equal(bare, name)) return [0, 0];
  if (contains(said, name)) return [1, -name.length];
  if (name.every((word) => said.includes(word))) return [2, -name.length];
  if (bare.length && bare.every((word) => name.includes(word))) return [3, name.length];
  return null;
}

function words(text: string): string[] {
  return fold(text).match(WORD) ?? [];
}

function contains(words: readonly string[], run: readonly string[]): boolean {
  return words.some((_, at) => equal(words.slice(at, at + run.length), run));
}

function equal(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((word, at) => word === b[at]);
}
