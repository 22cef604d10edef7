/**
 * Markdown as HTML that is safe to show, whoever wrote it: a model, a document, or somebody who hides in either. HTML
 * in the text is shown as text, pictures are only named (to fetch one would tell somebody), and what is left goes
 * through DOMPurify.
 */

import DOMPurify from "dompurify";
import { Marked, type Lexer, type MarkedExtension, type Token, type Tokens } from "marked";

const plain = {
  gfm: true,
  breaks: true,
  async: false,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escaped(text),
    image: ({ text, href }: Tokens.Image) => escaped(text || href),
    link({ href, tokens }: Tokens.Link) {
      const text = this.parser.parseInline(tokens);
      return /^(https?:|mailto:)/iu.test(href) ? `<a href="${escaped(href)}">${text}</a>` : text;
    },
  },
} satisfies MarkedExtension;
const FORMULA = /\\[([]|\$\$/u; // where one may begin
const WITHIN = String.raw`(?:(?!\n[ \t]*\n)[^]){1,2000}?`; // between prices there may be paragraphs
// No other one begins within, or each would be looked through up to its end. "\\[2pt]" is a line break.
const SPACED = String.raw`(?<!\\)\\\[(?!\d+\\\])(?:(?!(?<!\\)\\\[)[^]){1,2000}?\\\]`;
const PRICED = String.raw`(?<!\$)\$\$(?![\s$])[^\n$]{1,2000}(?<!\s)\$\$(?!\$)`; // and "$$ is cheap" is none
const ANY_FORMULA = String.raw`(?<!\\)\\\((?:(?!(?<!\\)\\\()[^]){1,2000}?\\\)|${SPACED}|${PRICED}`;
const FORMULAS = new RegExp(ANY_FORMULA, "gu");
const IN_LINE = new RegExp(`^(?:${ANY_FORMULA})`, "u");
const ON_LINES = new RegExp(`^ {0,3}(${SPACED}|\\$\\$${WITHIN}\\$\\$)[ \\t]*(?:\\n+|$)`, "u");
const FORMULA_MAX = 2_010;
const WINDOW = 8_000;
const PIECE = 4_000; // characters of HTML that are made safe at once
const SIGHT = 2_000; // letters: each piece of a line looks ahead for one, and all of the line would take the square of the time

const quotations = new Marked(plain);
const answers = new Marked(plain, formulas());

const ALLOWED = {
  ALLOWED_TAGS: [
    ...["p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "a", "sup", "button"],
    ...["h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "input"],
    ...["table", "thead", "tbody", "tr", "th", "td"],
  ],
  ALLOWED_ATTR: ["href", "align", "start", "type", "checked", "disabled", "data-citation", "aria-label"],
};

/**
 * A line within so many quotations and lists is no Markdown: a model repeats itself, and the parser would not come back.
 * One across the page is.
 */
const TOO_DEEP = /^[ \t]*(?!([-*])(?:[ \t]*\1)*[ \t]*$)(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+){20}/mu;

const COST_MAX = 20_000_000; // about half a second
const MARKS = /[*_~`<>[\]!@\\&#=]/gu;
/** What the parser looks through again from each of its characters. */
const RUNS = /[ \t]{100,}|[\w.!#$%&'*+/=?`{|}~-]{100,}/gu;
const CELLS_MAX = 500; // of a row

/**
 * Whether parsing would freeze the page: the time grows with the length of a block times its marks. Code costs nothing,
 * because nothing in it is a mark.
 */
function isCostly(text: string): boolean {
  let [cost, length, marks] = [0, 0, 0];
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/u.exec(line)?.[1] ?? "";
    const isEdge = fence === "" ? mark !== "" : mark.startsWith(fence);
    if (isEdge) fence = fence === "" ? mark : "";
    if (isEdge || fence !== "" || line.trim() === "") {
      cost += length * marks;
      [length, marks] = [0, 0];
      continue;
    }
    if (line.split("|", CELLS_MAX + 1).length > CELLS_MAX) return true;
    length += line.length;
    marks += line.match(MARKS)?.length ?? 0;
    for (const run of line.match(RUNS) ?? []) cost += run.length * run.length;
  }
  return cost + length * marks > COST_MAX;
}

export function toHtml(text: string, isQuotes = false): string {
  return [...htmlOf(text, isQuotes)].join("");
}

/**
 * Yield the HTML of each block of a text, and "" wherever the caller may pause. Text that is nested too deeply, or would
 * freeze the page, is shown as it is written. `window`: characters that are split into blocks at once.
 */
export function* htmlOf(text: string, isQuotes = false, window = WINDOW): Generator<string> {
  const marked = isQuotes || !FORMULA.test(text) ? quotations : answers;
  const blocks: Token[] = [];
  try {
    if (TOO_DEEP.test(text) || isCostly(text)) throw new RangeError();
    for (const found of blocksOf(text.replace(/\r\n?/gu, "\n"), marked, window)) {
      if (found) blocks.push(found);
      yield "";
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // the stack is full
    yield asWritten(text);
    return;
  }
  const parser = new marked.Parser(marked.defaults);
  for (const block of blocks) yield parsed(parser, block);
}

function parsed(parser: { parse(tokens: Token[]): unknown }, block: Token): string {
  try {
    return parser.parse([block]) as string;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return asWritten(block.raw);
  }
}

/**
 * Yield the blocks of a text, complete with what stands in them, after as many undefined as there are pauses. The lexer
 * cannot pause, so it gets a window of the text. The blocks near its end are split off again with the next
 * window, because the last one may go on there, and a formula may begin in one and end beyond.
 */
function* blocksOf(text: string, marked: Marked, window: number): Generator<Token | undefined> {
  const links = Object.create(null) as Lexer["tokens"]["links"];
  const lexers = [];
  const blocks: Token[] = [];
  let size = window;
  for (let at = 0; at < text.length;) {
    const lexer = new marked.Lexer(marked.defaults);
    lexer.tokens.links = links;
    const blank = text.indexOf("\n\n", at + size);
    const end = blank < 0 ? text.length : blank + 2;
    lexer.blockTokens(text.slice(at, end), lexer.tokens);
    const whole = end < text.length ? ended(lexer.tokens, end - at - FORMULA_MAX) : lexer.tokens;
    yield undefined;
    size = whole.length > 0 ? window : size * 2;
    if (whole.length === 0) continue;
    at = end < text.length ? at + lengthOf(whole) : end;
    lexers.push(lexer);
    blocks.push(...whole);
  }
  for (const lexer of lexers)
    for (const { src, tokens } of lexer.inlineQueue) {
      lexer.inlineTokens(src, tokens);
      yield undefined;
    }
  yield* blocks;
}

/** Return the blocks that end within `length` characters. */
function ended(blocks: readonly Token[], length: number): Token[] {
  let at = 0;
  return blocks.slice(
    0,
    blocks.findIndex(({ raw }) => (at += raw.length) > length),
  );
}

const lengthOf = (blocks: readonly Token[]) => blocks.reduce((sum, { raw }) => sum + raw.length, 0);

function asWritten(text: string): string {
  return `<p>${escaped(text).replaceAll("\n", "<br>")}</p>`;
}

/** `sources`: names of the citations of a quotation answer; the app itself has put `[1]` under the first quotation. */
export function toSafeHtml(text: string, sources: readonly string[], isQuotes: boolean): string[] {
  return [...safeHtmlOf(text, sources, isQuotes)].filter(Boolean);
}

/** Yield pieces of safe HTML, some blocks each, and "" wherever the caller may pause. The parameters of `toSafeHtml`. */
export function* safeHtmlOf(text: string, sources: readonly string[], isQuotes: boolean): Generator<string> {
  const cite = citing(isQuotes ? sources : []);
  const safe = (piece: string): string => {
    const html = DOMPurify.sanitize(piece, { ...ALLOWED, RETURN_DOM_FRAGMENT: true });
    for (const link of html.querySelectorAll("a")) {
      link.rel = "noopener noreferrer";
      link.target = "_blank";
    }
    cite(html);
    const holder = document.createElement("div");
    holder.append(html);
    return holder.innerHTML;
  };
  let piece = "";
  for (const block of htmlOf(text, isQuotes)) {
    piece += block;
    if (piece.length < PIECE) yield "";
    else {
      yield safe(piece);
      piece = "";
    }
  }
  if (piece) yield safe(piece);
}

/**
 * Return a function that turns the last line of each quotation, piece by piece, into a button that names its source. Any
 * other number in brackets stays text: it is part of a document, or a model made it up, because its prompt has no numbers.
 */
function citing(sources: readonly string[]): (html: DocumentFragment) => void {
  let at = 0;
  return (html) => {
    for (const quotation of [...html.children].filter(({ localName }) => localName === "blockquote")) {
      const last = quotation.lastElementChild;
      const source = sources[at++];
      if (source !== undefined && last?.textContent === `[${at}]`)
        last.replaceChildren(citationButton(source, at - 1));
    }
  };
}

function citationButton(source: string, index: number): Node {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: source, title: source });
  button.dataset["citation"] = String(index);
  button.setAttribute("aria-label", source);
  return button;
}

/**
 * Formulas stay as they came, to be read as code and copied to where they are set. In quotations the same marks stand
 * for brackets of the text (see core/text/escapeMarkdown.ts), and around a number alone for a citation.
 */
function formulas(): MarkedExtension {
  return {
    extensions: [
      {
        name: "formula",
        level: "inline",
        start: (text) => text.slice(0, SIGHT).search(FORMULA),
        tokenizer: (text) => token("formula", IN_LINE.exec(text)),
        renderer: ({ text }) => `<code>${escaped(text)}</code>`,
      },
      {
        name: "formulas",
        level: "block",
        start: (text) => paragraph(text).search(/(?<=\n) {0,3}(?:\\\[|\$\$)/u),
        tokenizer: (text) => token("formulas", ON_LINES.exec(text)),
        renderer: ({ text }) => `<pre><code>${escaped(text)}</code></pre>\n`,
      },
    ],
    // No mark of a formula begins or ends what is stressed around it.
    hooks: { emStrongMask: (text) => text.replace(FORMULAS, (it) => "a".repeat(it.length)) },
  };
}

/** The rest is asked for again: to look through all of it for each paragraph would take the square of the time. */
function paragraph(text: string): string {
  const end = text.indexOf("\n\n");
  return end < 0 ? text : text.slice(0, end + 2);
}

function token(type: string, found: RegExpExecArray | null) {
  return found ? { type, raw: found[0], text: found[1] ?? found[0] } : undefined;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/gu, (letter) => `&#${letter.charCodeAt(0)};`);
}
