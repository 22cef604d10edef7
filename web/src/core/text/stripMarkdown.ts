/**
 * Remove Markdown syntax from text, except inside code. The result is only for display: stored text, search and prompts
 * keep the Markdown.
 */

const MARKDOWN = /\.(?:md|markdown)$/iu;
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/u;
const INDENTED = /^(?: {4}|\t)/u;
const QUOTE = /^(?: {0,3}>[ \t]?)+/u;
const HEADING = /^ {0,3}#{1,6}(?:[ \t]+|$)/u;
const ITEM = /^([ \t]*)[-*+][ \t]+(?=\S)/u;
/** A horizontal rule, or the underline of a heading. */
const RULE = /^ {0,3}(?:([-_*])(?:[ \t]*\1){2,}|={2,})[ \t]*$/u;
/** The delimiter row between the header of a table and its other rows. */
const TABLE_RULE = /^(?=.*\|)(?=.*-)[\s|:-]+$/u;
const TABLE_ROW = /^[ \t]*\|(.+)\|[ \t]*$/u;
const CELL_END = /(?<!\\)\|/u;

/** Text that stays literal: escaped characters and inline code. */
const LITERAL = /\\([!-/:-@[-`{-~])|(?<!`)(`{1,100})(?!`) ?([^]{0,1000}?[^`]) ?\2(?!`)/gu;
const PLACEHOLDER = /\0(\d+)\0/gu;
const TARGET = String.raw`\((?:[^()\s]|\([^()\s]{0,1000}\)){0,1000}(?:\s{1,9}"[^"]{0,1000}")?\)`;
/**
 * Inline syntax and its replacements. Images precede links, which can contain them, and longer delimiters precede
 * shorter ones.
 *
 * Each pattern spans at most 1,000 characters: without a limit, text made of delimiters would take quadratic time.
 */
const INLINE: [RegExp, string][] = [
  [/<br(?:[\s/][^<>]{0,1000})?>/giu, " "],
  [/<\/?(?:a|b|code|div|em|i|img|kbd|p|span|strong|sub|sup)(?:[\s/][^<>]{0,1000})?>/giu, ""],
  [/<((?:https?:\/\/|mailto:)[^<>\s]{1,1000})>/gu, "$1"],
  [new RegExp(String.raw`!\[([^[\]]{0,1000})\]${TARGET}`, "gu"), "$1"],
  [new RegExp(String.raw`\[([^[\]]{1,1000})\]${TARGET}`, "gu"), "$1"],
  // Two numbers in brackets, such as [1][2], are references of a paper, and brackets after a name are an index. Neither
  // is a link.
  [/(?<![\p{L}\p{N}\]])\[(?!\d{1,9}\])([^[\]]{1,1000})\]\[[^[\]]{0,1000}\]/gu, "$1"],
  [/\*{3}(?=\S)([^*]{0,1000}[^*\s])\*{3}/gu, "$1"],
  [/\*\*(?=\S)([^]{0,1000}?\S)\*\*/gu, "$1"],
  [/(?<![*\p{L}\p{N}])\*(?=\S)([^*]{0,1000}[^*\s])\*(?![*\p{L}\p{N}])/gu, "$1"],
  // Program identifiers such as __init__ are not bold text.
  [/(?<![\p{L}\p{N}_])__(?![a-z0-9_]{1,100}__)(?=\S)([^]{0,1000}?\S)__(?![\p{L}\p{N}_])/gu, "$1"],
  [/(?<![\p{L}\p{N}_])_(?=[^\s_])([^_]{0,1000}[^_\s])_(?![\p{L}\p{N}_])/gu, "$1"],
  [/~~(?=\S)([^]{0,1000}?\S)~~/gu, "$1"],
];

/**
 * Strip Markdown from consecutive pieces of a document. Return the pieces unchanged if the extension of `filename` is
 * not that of Markdown.
 */
export function stripMarkdownOf(filename: string, ...pieces: string[]): string[] {
  return MARKDOWN.test(filename) ? pieces.map(reader()) : pieces;
}

export function stripMarkdown(markdown: string): string {
  return reader()(markdown);
}

/**
 * Return a function that strips one piece after the other. It keeps its state between calls, because a code block can
 * begin in one piece and end in the next.
 */
function reader(): (piece: string) => string {
  let fence = "";
  return (piece) => {
    const read: string[] = [];
    let open: string[] = []; // lines of a paragraph, joined before stripping, because inline syntax can span lines
    const close = () => void (read.push(...(open.length > 0 ? [inline(open.join("\n"))] : [])), (open = []));
    let mayBeCode = true;
    for (const line of piece.split("\n")) {
      const mark = FENCE.exec(line)?.[1];
      if (fence ? isEnd(line, fence) : mark) {
        fence = fence ? "" : mark!;
        continue;
      }
      const isBlank = line.trim() === "";
      const isCode: boolean = fence !== "" || (mayBeCode && INDENTED.test(line) && !ITEM.test(line));
      mayBeCode = isBlank || isCode;
      const said = isCode || isBlank ? line : block(line);
      if (said === null) continue;
      if (!isCode && !isBlank) open.push(said);
      else (close(), read.push(said));
    }
    close();
    return read.join("\n");
  };
}

/**
 * Return whether a line closes a code block: it contains only the character of the opening fence, at least as often.
 */
function isEnd(line: string, fence: string): boolean {
  const mark = line.trim();
  return mark.startsWith(fence) && [...mark].every((letter) => letter === fence[0]);
}

/** Return a line without its leading block syntax, or null if it consists of syntax only. */
function block(whole: string): string | null {
  const line = whole.replace(QUOTE, "");
  if (RULE.test(line) || TABLE_RULE.test(line)) return null;
  if (HEADING.test(line)) return withoutEnd(line.replace(HEADING, ""));
  const row = TABLE_ROW.exec(line)?.[1];
  if (row === undefined) return line.replace(ITEM, "$1• ");
  return row
    .split(CELL_END)
    .map((cell) => cell.trim())
    .filter(Boolean)
    .join(" · ");
}

/**
 * Return a heading without its closing "#" characters. A regular expression would take quadratic time in a run of tabs.
 */
function withoutEnd(heading: string): string {
  const line = heading.trimEnd();
  let end = line.length;
  while (line[end - 1] === "#") end -= 1;
  const isClosed = end < line.length && (line[end - 1] === " " || line[end - 1] === "\t");
  return isClosed ? line.slice(0, end).trimEnd() : heading;
}

function inline(text: string): string {
  const held: string[] = [];
  const hold = (_: string, escaped?: string, _ticks?: string, code?: string) =>
    `\0${held.push(escaped ?? code ?? "") - 1}\0`;
  const bare = INLINE.reduce(
    (said, [mark, left]) => said.replace(mark, left),
    withoutComments(text.replaceAll("\0", "").replace(LITERAL, hold)),
  );
  return bare.replace(PLACEHOLDER, (_, at: string) => held[Number(at)] ?? "");
}

/** Remove HTML comments. A regular expression would search for an end from every "<!--", which takes quadratic time. */
function withoutComments(text: string): string {
  const kept: string[] = [];
  let at = 0;
  for (;;) {
    const start = text.indexOf("<!--", at);
    const end = start < 0 ? -1 : text.indexOf("-->", start + 4);
    if (end < 0) return kept.join("") + text.slice(at);
    kept.push(text.slice(at, start));
    at = end + 3;
  }
}
