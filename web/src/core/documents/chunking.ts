/**
 * Cut a document into chunks, the same as server/vademecum/model/documents/chunking.py cuts it (the rule is stated there).
 * tests/conformance/chunking.json holds the two together. Positions count UTF-16 units, as JavaScript does anyway.
 */

import { normalize } from "../text/normalization.ts";
import { classBody, MARKS } from "../text/unicode14.ts";

const SIZE = 1000;
export const BUDGET = 12 * SIZE;
const JOIN = "\n\n";

/** A stretch of a document, in reading order, that knows where it stood. */
export interface Part {
  text: string;
  page?: number | undefined;
  section?: string | undefined;
}

/** One piece of a document. `start` counts UTF-16 units of the document's normalised text. */
export interface Chunk {
  index: number;
  start: number;
  text: string;
  page?: number;
  section?: string;
}

/** The parts of one page put together: where each begins, and the ends of text before another section. */
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
/** A boundary of a kind counts only if the chunk it ends costs at least this. */
const LEAST = [BUDGET / 4, BUDGET / 2, BUDGET / 2, BUDGET / 4] as const;

/** The text that `start` counts in. */
export function documentText(parts: readonly Part[]): string {
  return parts.map((part) => normalize(part.text)).join(JOIN);
}

/** The chunks of a document, in order. A document of blanks has none. */
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
        ...(page === undefined ? {} : { page }), // no field, rather than an empty one: rows are compared
        ...(section === undefined ? {} : { section }),
      });
    }
    base += text.length + JOIN.length;
  }
  return chunks;
}

/** The document's text again, from its chunks in order. Between two of them is what their `start`s leave open. */
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

/** What all of a normalised text costs. */
export function points(text: string): number {
  let sum = 0;
  for (const character of text) sum += cost(character.codePointAt(0)!);
  return sum;
}

/** Points of one code point of normalised text. Weighed on what BERT's vocabulary makes of real texts. */
function cost(code: number): number {
  if (code >= 0xac00 && code <= 0xd7a3) return HANGUL; // the tokenizer takes a syllable apart into letters
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

/** Neighbouring parts of the same page together. */
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

/** Where the blanks begin that end `text.slice(start, end)`. */
function visibleEnd(text: string, start: number, end: number): number {
  while (end > start && IS_BLANK.test(text[end - 1]!)) end--;
  return end;
}

/** First and past-the-last unit of every chunk of `text`. */
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

/** Where the chunk that starts at `start` ends. */
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
    // A little more than one chunk is left: two fair ones rather than a full one and a crumb.
    fits = bisectRight(costs, (BUDGET * 3) / 4);
  }
  return bestEnd(text, start, fits, costs);
}

/** What the text from `start` costs up to and with each unit, until it is more than `most`. */
function costsFrom(text: string, start: number, end: number, most: number): number[] {
  const costs: number[] = [];
  let sum = 0;
  for (let at = start; at < end && sum <= most;) {
    const code = text.codePointAt(at)!;
    sum += cost(code);
    for (const next = after(text, at); at < next; at++) costs.push(sum); // both halves of a pair cost the whole
  }
  return costs;
}

/** The last boundary of the best kind there is among the first `fits` units. */
function bestEnd(text: string, start: number, fits: number, costs: readonly number[]): number {
  const found: (number | undefined)[] = [];
  const matches = [...text.slice(start, start + fits + 1).matchAll(GAP_OR_STOP)];
  for (const match of matches.reverse()) {
    const [kind, at] = boundary(text, start + match.index, start + match.index + match[0].length);
    if (at - start > fits || costs[at - start - 1]! < LEAST[kind] || matchesAt(GLUED_BEFORE, text, at))
      continue;
    if (kind === PARAGRAPH) return at;
    found[kind] ??= at;
  }
  return found.find((at) => at !== undefined) ?? hardEnd(text, start, start + fits);
}

/** The kind of the boundary between `first` and `last`, and where the text before it ends. */
function boundary(text: string, first: number, last: number): [0 | 1 | 2 | 3, number] {
  if (!IS_BLANK.test(text[first]!)) return [SENTENCE, last];
  const lines = text.slice(first, afterGap(text, last)).split("\n").length - 1;
  if (lines > 1) return [PARAGRAPH, first];
  if (SENTENCE_END.test(text.slice(Math.max(0, first - 4), first))) return [SENTENCE, first];
  return [lines ? LINE : WORD, first];
}

/** The last place in front of `furthest` that parts no character from its marks, joiners or second half. */
function hardEnd(text: string, start: number, furthest: number): number {
  let at = furthest;
  for (let step = 0; step < BACK && at > start; step++, at = before(text, at)) {
    if (!matchesAt(GLUED_BEFORE, text, at) && text[at - 1] !== "\u200d" && !partsAFlag(text, start, at))
      return at;
  }
  for (at = furthest; matchesAt(MARK, text, at);) at = before(text, at); // a run of marks is short, so it ends
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

/** Where the code point in front of `at` begins. Normalised text has no half pairs. */
function before(text: string, at: number): number {
  const code = text.charCodeAt(at - 1);
  return at - (code >= 0xdc00 && code <= 0xdfff ? 2 : 1);
}

/** How many of the sorted numbers are at most `most`. */
function bisectRight(sorted: readonly number[], most: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}
