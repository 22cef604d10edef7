/**
 * Plain text and its kin: Markdown, CSV, JSON, source code. Text stays as it is, but for what stands above the rows of a
 * long table, and for what nobody could read or find: letters that JSON has as numbers, and the bytes of pictures.
 */

import { decode } from "../charset/detect.ts";
import { CSV, JSON_TEXT, MARKDOWN, part, TSV, type Part, type Read } from "../result.ts";
import { quoted, table, type Row } from "../tables.ts";

const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/u;
const HEADING = /^ {0,3}#{1,6}[ \t]+(.*)$/u;
const SPELLED = /\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|.)/gisu;
const RUN = /[A-Za-z0-9+/]+/gu; // counted by us: to count millions of letters, the machine of expressions lacks the memory
const BYTES_FROM = 512; // letters
const MIXED = [/[A-Z]/u, /[a-z]/u, /[0-9]/u];
const LINE_END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/u; // Python's: sections must begin where the server's do

/** A form feed is a page break, as in an RFC. */
export function parsePlain(data: Uint8Array, mimeType: string): Read {
  const pages = decode(data).split("\f");
  if (pages.length === 1) return { mimeType, parts: [part(pages[0]!)] };
  const parts = pages.map((text, at) => part(text, { page: at + 1 })).filter(({ text }) => text.trim());
  const pageCount = parts.at(-1)?.page;
  return { mimeType, parts, ...(pageCount === undefined ? {} : { pageCount }) };
}

export function parseCsv(data: Uint8Array): Read {
  return parseTable(data, CSV, ",;\t|");
}

export function parseTsv(data: Uint8Array): Read {
  return parseTable(data, TSV, "\t");
}

/** With a page break in it, it is a plain text. An empty line is counted, but no row: a passage of them would be names alone. */
function parseTable(data: Uint8Array, mimeType: string, separators: string): Read {
  const text = decode(data);
  if (text.includes("\f")) return parsePlain(data, mimeType);
  return { mimeType, parts: table(part(text), rowsOf(text), separators) };
}

function* rowsOf(text: string): Iterable<Row> {
  let number = 0;
  for (const row of quoted(linesOf(text), "\n")) {
    number++;
    if (row) yield { number, text: row };
  }
}

/** One after the other: all at once would take much memory of very short ones. */
function* linesOf(text: string): Iterable<string> {
  let at = 0;
  for (const end of text.matchAll(/\r\n|[\r\n]/gu)) {
    yield text.slice(at, end.index);
    at = end.index + end[0].length;
  }
  yield text.slice(at);
}

export function parseJson(data: Uint8Array): Read {
  const text = decode(data).replace(SPELLED, letterOf);
  return { mimeType: JSON_TEXT, parts: [part(withoutPictures(text))] };
}

/** As itself, where JSON allows that. */
function letterOf(written: string, high?: string, low?: string, number?: string): string {
  if (high && low) return String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16));
  const letter = number ? String.fromCharCode(Number.parseInt(number, 16)) : "";
  const isFree = letter >= " " && !'"\\\x7f'.includes(letter) && !/[\ud800-\udfff]/u.test(letter);
  return isFree ? letter : written;
}

/** Base64 says nothing to anybody, and a notebook's diagram would be hundreds of passages of it. */
function withoutPictures(text: string): string {
  return text.replace(RUN, (run) => (isBytes(run) ? "…" : run));
}

function isBytes(run: string): boolean {
  return run.length >= BYTES_FROM && MIXED.every((some) => some.test(run));
}

export function parseMarkdown(data: Uint8Array): Read {
  const parts: Part[] = [];
  let lines: string[] = [];
  let section: string | undefined;
  let fence = ""; // the marker that opened the code we are in
  for (const line of splitLines(withoutPictures(decode(data)))) {
    const marker = FENCE.exec(line)?.[1];
    const title = fence ? "" : titleOf(line);
    if (fence && marker && closes(line, fence)) fence = "";
    else if (marker && !fence) fence = marker;
    if (title) {
      parts.push(part(lines.join("\n"), { section }));
      [lines, section] = [[], title];
    }
    lines.push(line);
  }
  parts.push(part(lines.join("\n"), { section }));
  return { mimeType: MARKDOWN, parts: parts.filter(({ text }) => text.trim()) };
}

function splitLines(text: string): string[] {
  const lines = text.split(LINE_END);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** What a heading says, "" if this is none. The marks that may end it are not part of it; those of "C#" are. */
function titleOf(line: string): string {
  const said = HEADING.exec(line)?.[1]?.trimEnd() ?? "";
  let end = said.length;
  while (said[end - 1] === "#") end--;
  const bare = said.slice(0, end);
  return bare === "" || bare.endsWith(" ") || bare.endsWith("\t") ? bare.trimEnd() : said;
}

/** Code ends with the kind of marker that began it, at least as long, alone on its line. */
function closes(line: string, fence: string): boolean {
  const mark = line.trim();
  return mark.startsWith(fence) && [...mark].every((letter) => letter === fence[0]);
}
