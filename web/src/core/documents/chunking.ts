/**
 * Split a document into chunks. This module mirrors server/vademecum/model/documents/chunking.py, which explains the
 * rules; both are tested with tests/conformance/chunking.json. Positions count UTF-16 code units, as JavaScript strings
 * do.
 */

import { normalize } from "../text/normalization.ts";
import { classBody, MARKS } from "../text/unicode14.ts";

const SIZE = 1000;
export const BUDGET = 12 * SIZE;
const JOIN = "\n\n";

/** A part of a document in reading order, with its page and section. */
export interface Part {
  text: string;
  page?: number | undefined;
  section?: string | undefined;
}

/** A chunk of a document. `start` is its offset in the document's normalized text, in UTF-16 code units. */
export interface Chunk {
  index: number;
  start: number;
  text: string;
  page?: number;
  section?: string;
}

/**
 * The joined text of one page. `starts` contains the offset of each part. `breaks` contains the offsets at which the
 * text before a new section ends.
 */
interface Page {
  text: string;
  starts: number[];
  breaks: number[];
}

const UNIT = 12;
const TOKEN = 25;
const HANGUL = 50;
const BLANK = "\\t\\n \\xa0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000";
const CLOSERS = "\"'\\u00bb\\u2019\\u201d\\u203a\\u300b\\u300d\\u300f\\uff09)\\]";
const IS_BLANK = new RegExp(`[${BLANK}]`);
const VISIBLE = new RegExp(`[^${BLANK}]`, "g");
const GAP_OR_STOP = new RegExp(`[${BLANK}]+|[\\u3002\\uff01\\uff1f\\uff61]+[${CLOSERS}]*`, "g");
const SENTENCE_END = new RegExp(`[.!?\\u2026\\u061f\\u06d4\\u0964\\u0965\\u0589\\u1362][${CLOSERS}]{0,3}$`);
const MARK = new RegExp(`[${classBody(MARKS)}]`, "uy");
const GLUED_BEFORE = new RegExp(
  `[${classBody(MARKS)}\\u200c\\u200d\\u1160-\\u11ff\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]`,
  "uy",
);
const BACK = 128;

const [PARAGRAPH, SENTENCE, LINE, WORD] = [0, 1, 2, 3] as const;
/** Minimum cost of a chunk that ends at a boundary, by the kind of the boundary. */
const MIN_COST = [BUDGET / 4, BUDGET / 2, BUDGET / 2, BUDGET / 4] as const;

/** Return the normalized text of a document. `Chunk.start` is an offset in this text. */
export function documentText(parts: readonly Part[]): string {
  return parts.map((part) => normalize(part.text)).join(JOIN);
}

/** Return the chunks of a document, in order. A document that contains only whitespace has no chunks. */
export function chunk(parts: readonly Part[]): Chunk[] {
  const chunks: Chunk[] = [];
  let base = 0;
  for (const group of pages(parts)) {
    const { text, starts, breaks } = assemble(group);
    for (const [first, last] of spans(text, breaks)) {
      const { page, section } = group[bisectRight(starts, first) - 1]!;
      chunks.push({
        index: chunks.length,
        start: base + first,
        text: text.slice(first, last),
        // Omit absent fields instead of storing undefined, because rows are compared.
        ...(page === undefined ? {} : { page }),
        ...(section === undefined ? {} : { section }),
      });
    }
    base += text.length + JOIN.length;
  }
  return chunks;
}

/** Join the chunks of a document, in order, to its text. Gaps between chunks become spaces or paragraph breaks. */
export function join(chunks: readonly Pick<Chunk, "start" | "text">[]): string {
  let text = "";
  let end: number | undefined;
  for (const one of chunks) {
    const gap = end === undefined ? 0 : one.start - end;
    text += (gap >= JOIN.length ? JOIN : " ".repeat(Math.max(gap, 0))) + one.text;
    end = one.start + one.text.length;
  }
  return text;
}

/** Return the cost of a normalized text in points. */
export function points(text: string): number {
  let sum = 0;
  for (const character of text) sum += cost(character.codePointAt(0)!);
  return sum;
}

/**
 * Return the cost of one code point of normalized text in points. The weights come from BERT token counts of real
 * texts.
 */
function cost(code: number): number {
  if (code >= 0xac00 && code <= 0xd7a3) return HANGUL; // the tokenizer splits a syllable into letters
  if (code > 0x24f) {
    const latin =
      (code >= 0x300 && code <= 0x36f) ||
      (code >= 0x1e00 && code <= 0x1eff) ||
      (code >= 0x2000 && code <= 0x200a);
    return latin ? UNIT : TOKEN;
  }
  if (code >= 0x30 && code <= 0x39) return 15;
  const punctuation =
    (code >= 0x21 && code <= 0x2f) ||
    (code >= 0x3a && code <= 0x40) ||
    (code >= 0x5b && code <= 0x60) ||
    (code >= 0x7b && code <= 0x7e);
  return punctuation ? TOKEN : UNIT;
}

/** Group consecutive parts of the same page. */
function pages(parts: readonly Part[]): Part[][] {
  const groups: Part[][] = [];
  for (const part of parts) {
    const last = groups.at(-1);
    if (last && last[0]!.page === part.page) last.push(part);
    else groups.push([part]);
  }
  return groups;
}

function assemble(parts: readonly Part[]): Page {
  const texts = parts.map((part) => normalize(part.text));
  const starts: number[] = [];
  const breaks: number[] = [];
  let at = 0;
  let solid = 0;
  for (const [number, text] of texts.entries()) {
    if (number && parts[number]!.section !== parts[number - 1]!.section) breaks.push(solid);
    starts.push(at);
    const visible = visibleEnd(text, 0, text.length);
    if (visible) solid = at + visible;
    at += text.length + JOIN.length;
  }
  return { text: texts.join(JOIN), starts, breaks };
}

/** Return the offset of the trailing whitespace of `text.slice(start, end)`. */
function visibleEnd(text: string, start: number, end: number): number {
  while (end > start && IS_BLANK.test(text[end - 1]!)) end--;
  return end;
}

/** Yield the start offset and the exclusive end offset of every chunk of `text`. */
function* spans(text: string, breaks: readonly number[]): Generator<[number, number]> {
  const end = visibleEnd(text, 0, text.length);
  let start = afterGap(text, 0);
  while (start < end) {
    const stop = endOfChunk(text, start, end, breaks);
    yield [start, visibleEnd(text, start, stop)];
    start = afterGap(text, stop);
  }
}

function afterGap(text: string, at: number): number {
  VISIBLE.lastIndex = at;
  return VISIBLE.exec(text)?.index ?? text.length;
}

/** Return the end of the chunk that begins at `start`. */
function endOfChunk(text: string, start: number, end: number, breaks: readonly number[]): number {
  const ahead = (BUDGET * 5) / 4;
  const costs = costsFrom(text, start, end, ahead);
  let fits = bisectRight(costs, BUDGET);
  for (let number = bisectRight(breaks, start); number < breaks.length; number++) {
    const at = breaks[number]!;
    if (at - start > fits) break;
    if (costs[at - start - 1]! * 4 >= BUDGET) return at;
  }
  if (start + fits === end) return end;
  if (start + costs.length === end && costs.at(-1)! <= ahead) {
    // The remaining text is little more than one chunk. End this chunk earlier, so that the last chunk is not tiny.
    fits = bisectRight(costs, (BUDGET * 3) / 4);
  }
  return bestEnd(text, start, fits, costs);
}

/**
 * Return the cumulative cost of the text from `start` up to and including each code unit. Stop once the cost exceeds
 * `most`.
 */
function costsFrom(text: string, start: number, end: number, most: number): number[] {
  const costs: number[] = [];
  let sum = 0;
  for (let at = start; at < end && sum <= most;) {
    const code = text.codePointAt(at)!;
    sum += cost(code);
    // Both units of a surrogate pair get the full cost.
    for (const next = after(text, at); at < next; at++) costs.push(sum);
  }
  return costs;
}

/** Return the last boundary of the best available kind within the first `fits` code units. */
function bestEnd(text: string, start: number, fits: number, costs: readonly number[]): number {
  const found: (number | undefined)[] = [];
  const matches = [...text.slice(start, start + fits + 1).matchAll(GAP_OR_STOP)];
  for (const match of matches.reverse()) {
    const [kind, at] = boundary(text, start + match.index, start + match.index + match[0].length);
    if (at - start > fits || costs[at - start - 1]! < MIN_COST[kind] || matchesAt(GLUED_BEFORE, text, at))
      continue;
    if (kind === PARAGRAPH) return at;
    found[kind] ??= at;
  }
  return found.find((at) => at !== undefined) ?? hardEnd(text, start, start + fits);
}

/** Return the kind of the boundary between `first` and `last`, and the end of the text before it. */
function boundary(text: string, first: number, last: number): [0 | 1 | 2 | 3, number] {
  if (!IS_BLANK.test(text[first]!)) return [SENTENCE, last];
  const lines = text.slice(first, afterGap(text, last)).split("\n").length - 1;
  if (lines > 1) return [PARAGRAPH, first];
  if (SENTENCE_END.test(text.slice(Math.max(0, first - 4), first))) return [SENTENCE, first];
  return [lines ? LINE : WORD, first];
}

/**
 * Return the last offset up to `furthest` that does not split a sequence of characters that belong together: marks,
 * joiners, flags and surrogate pairs.
 */
function hardEnd(text: string, start: number, furthest: number): number {
  let at = furthest;
  for (let step = 0; step < BACK && at > start; step++, at = before(text, at)) {
    if (!matchesAt(GLUED_BEFORE, text, at) && text[at - 1] !== "\u200d" && !partsAFlag(text, start, at))
      return at;
  }
  // This loop is short, because normalization limits runs of marks.
  for (at = furthest; matchesAt(MARK, text, at);) at = before(text, at);
  return at;
}

function partsAFlag(text: string, start: number, at: number): boolean {
  let letters = 0;
  if (!isFlagLetter(text, at)) return false;
  for (at = before(text, at); at >= start && isFlagLetter(text, at); at = before(text, at)) letters++;
  return letters % 2 === 1;
}

function isFlagLetter(text: string, at: number): boolean {
  const code = text.codePointAt(at)!;
  return code >= 0x1f1e6 && code <= 0x1f1ff;
}

function matchesAt(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

function after(text: string, at: number): number {
  return at + (text.codePointAt(at)! > 0xffff ? 2 : 1);
}

/** Return the start of the code point before `at`. Normalized text has no lone surrogates. */
function before(text: string, at: number): number {
  const code = text.charCodeAt(at - 1);
  return at - (code >= 0xdc00 && code <= 0xdfff ? 2 : 1);
}

/** Return how many of the sorted numbers are at most `most`. */
function bisectRight(sorted: readonly number[], most: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}
