/**
 * Parse plain text, Markdown, CSV, JSON and source code. The text is not changed, with three exceptions: the column
 * names of long tables are repeated, character escapes of JSON are decoded, and Base64 data in JSON and Markdown is
 * removed.
 */

import { decode } from "../charset/detect.ts";
import { CSV, JSON_TEXT, MARKDOWN, part, TSV, type Parsed, type Part } from "../result.ts";
import { joinQuoted, splitTable, type Row } from "../tables.ts";

const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/u;
const HEADING = /^ {0,3}#{1,6}[ \t]+(.*)$/u;
const ESCAPE = /\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|.)/gisu;
/** Runs of Base64 letters, of any length: a minimum length in the pattern would need too much memory for long runs. */
const BASE64_RUN = /[A-Za-z0-9+/]+/gu;
/** Minimum length in characters of a run that counts as Base64 data. */
const BASE64_MIN = 512;
const BASE64_LETTERS = [/[A-Z]/u, /[a-z]/u, /[0-9]/u];
/** The line ends of Python's `splitlines`, so that the sections are the same as the server's. */
const LINE_END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/u;

/** Parse plain text. A form feed starts a new page, as in RFCs. */
export function parsePlain(data: Uint8Array, mimeType: string): Parsed {
  const pages = decode(data).split("\f");
  if (pages.length === 1) return { mimeType, parts: [part(pages[0]!)] };
  const parts = pages.map((text, index) => part(text, { page: index + 1 })).filter(({ text }) => text.trim());
  const pageCount = parts.at(-1)?.page;
  return { mimeType, parts, ...(pageCount === undefined ? {} : { pageCount }) };
}

export function parseCsv(data: Uint8Array): Parsed {
  return parseTable(data, CSV, ",;\t|");
}

export function parseTsv(data: Uint8Array): Parsed {
  return parseTable(data, TSV, "\t");
}

/** Parse a table. A text with page breaks is parsed as plain text instead. */
function parseTable(data: Uint8Array, mimeType: string, separators: string): Parsed {
  const text = decode(data);
  if (text.includes("\f")) return parsePlain(data, mimeType);
  return { mimeType, parts: splitTable(part(text), rowsOf(text), separators) };
}

function* rowsOf(text: string): Iterable<Row> {
  let number = 0;
  for (const row of joinQuoted(linesOf(text), "\n")) {
    number++;
    if (row) yield { number, text: row };
  }
}

/** Yield the lines one by one, because an array of many short lines would take too much memory. */
function* linesOf(text: string): Iterable<string> {
  let start = 0;
  for (const end of text.matchAll(/\r\n|[\r\n]/gu)) {
    yield text.slice(start, end.index);
    start = end.index + end[0].length;
  }
  yield text.slice(start);
}

export function parseJson(data: Uint8Array): Parsed {
  const text = decode(data).replace(ESCAPE, unescapeJson);
  return { mimeType: JSON_TEXT, parts: [part(withoutBase64(text))] };
}

/** Return the escaped character, or the escape itself if JSON does not allow the character unescaped. */
function unescapeJson(escape: string, high?: string, low?: string, number?: string): string {
  if (high && low) return String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16));
  const character = number ? String.fromCharCode(Number.parseInt(number, 16)) : "";
  const isAllowed = character >= " " && !'"\\\x7f'.includes(character) && !/[\ud800-\udfff]/u.test(character);
  return isAllowed ? character : escape;
}

/** Replace Base64 data, such as the diagrams in a notebook, which would become hundreds of passages. */
function withoutBase64(text: string): string {
  return text.replace(BASE64_RUN, (run) => (isBase64(run) ? "…" : run));
}

function isBase64(run: string): boolean {
  return run.length >= BASE64_MIN && BASE64_LETTERS.every((letters) => letters.test(run));
}

export function parseMarkdown(data: Uint8Array): Parsed {
  const parts: Part[] = [];
  let lines: string[] = [];
  let section: string | undefined;
  let openFence = "";
  for (const line of splitLines(withoutBase64(decode(data)))) {
    const fence = FENCE.exec(line)?.[1];
    const title = openFence ? "" : titleOf(line);
    if (openFence && fence && closesFence(line, openFence)) openFence = "";
    else if (fence && !openFence) openFence = fence;
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

/** Return the text of a heading, or "". Closing "#" characters are removed if a space precedes them, unlike in "C#". */
function titleOf(line: string): string {
  const text = HEADING.exec(line)?.[1]?.trimEnd() ?? "";
  let end = text.length;
  while (text[end - 1] === "#") end--;
  const title = text.slice(0, end);
  return title === "" || title.endsWith(" ") || title.endsWith("\t") ? title.trimEnd() : text;
}

/** Return whether a line closes a code block: it has only the fence's character, at least as often as `openFence`. */
function closesFence(line: string, openFence: string): boolean {
  const fence = line.trim();
  return fence.startsWith(openFence) && [...fence].every((character) => character === openFence[0]);
}
