/**
 * Convert untrusted Markdown, which a language model or a document may contain, to safe HTML. HTML in the Markdown is
 * shown as text. An image is replaced by its description, because fetching it would tell its server about the user.
 * DOMPurify sanitizes the result.
 */

import DOMPurify from "dompurify";
import { CITATION, numbersIn } from "../../core/chat/citedNumbers.ts";
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
const FORMULA_START = /\\[([]|\$\$/u;
// A formula does not extend over a blank line: two "$$" in different paragraphs may be prices.
const WITHOUT_BLANK_LINE = String.raw`(?:(?!\n[ \t]*\n)[^]){1,2000}?`;
// A formula in \[ and \]. It must not contain another "\[", or the search would take quadratic time. Not a formula:
// LaTeX's line break "\\[2pt]" and the number "\[1\]".
const BRACKETS = String.raw`(?<!\\)\\\[(?!\d+\\\])(?:(?!(?<!\\)\\\[)[^]){1,2000}?\\\]`;
// A formula in $$ and $$, without spaces at its ends, which excludes "$$ is cheap".
const DOLLARS = String.raw`(?<!\$)\$\$(?![\s$])[^\n$]{1,2000}(?<!\s)\$\$(?!\$)`;
const FORMULA = String.raw`(?<!\\)\\\((?:(?!(?<!\\)\\\()[^]){1,2000}?\\\)|${BRACKETS}|${DOLLARS}`;
const FORMULAS = new RegExp(FORMULA, "gu");
const INLINE_FORMULA = new RegExp(`^(?:${FORMULA})`, "u");
const BLOCK_FORMULA = new RegExp(
  `^ {0,3}(${BRACKETS}|\\$\\$${WITHOUT_BLANK_LINE}\\$\\$)[ \\t]*(?:\\n+|$)`,
  "u",
);
/** Maximum length of a formula, in characters. */
const FORMULA_MAX = 2_010;
/** Number of characters that are split into blocks at once. */
const WINDOW = 8_000;
/** Minimum number of characters of HTML that are sanitized at once, except for the last piece. */
const PIECE = 4_000;
/**
 * Number of characters in which to search for the next inline formula. The parser searches from each token, so a search
 * of the whole text would take quadratic time.
 */
const LOOKAHEAD = 2_000;

const withoutFormulas = new Marked(plain);
const withFormulas = new Marked(plain, formulas());

const ALLOWED = {
  ALLOWED_TAGS: [
    ...["p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "a", "sup", "button"],
    ...["h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "input"],
    ...["table", "thead", "tbody", "tr", "th", "td"],
  ],
  ALLOWED_ATTR: ["href", "align", "start", "type", "checked", "disabled", "data-citation", "aria-label"],
};

/**
 * Pattern of a line with 20 nested quotations or lists, which would take too long to parse. A model that repeats itself
 * can write such a line. A horizontal rule does not match.
 */
const TOO_DEEP = /^[ \t]*(?!([-*])(?:[ \t]*\1)*[ \t]*$)(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+){20}/mu;

/** Maximum cost of a text, as computed by `isCostly`. A text of this cost takes about half a second to parse. */
const COST_MAX = 20_000_000;
const SYNTAX_CHARACTERS = /[*_~`<>[\]!@\\&#=]/gu;
/** Pattern of sequences that take quadratic time, because the parser scans them again from each of their characters. */
const RUNS = /[ \t]{100,}|[\w.!#$%&'*+/=?`{|}~-]{100,}/gu;
/** Maximum number of cells in a row of a table. */
const CELLS_MAX = 500;

/**
 * Return whether parsing a text would freeze the page. The parsing time of a block grows with its length multiplied by
 * the number of its syntax characters. Code blocks are not counted.
 */
function isCostly(text: string): boolean {
  let [cost, length, syntax] = [0, 0, 0];
  let openFence = "";
  for (const line of text.split("\n")) {
    const fence = /^ {0,3}(`{3,}|~{3,})/u.exec(line)?.[1] ?? "";
    const isFence = openFence === "" ? fence !== "" : fence.startsWith(openFence);
    if (isFence) openFence = openFence === "" ? fence : "";
    if (isFence || openFence !== "" || line.trim() === "") {
      cost += length * syntax;
      [length, syntax] = [0, 0];
      continue;
    }
    if (line.split("|", CELLS_MAX + 1).length > CELLS_MAX) return true;
    length += line.length;
    syntax += line.match(SYNTAX_CHARACTERS)?.length ?? 0;
    for (const run of line.match(RUNS) ?? []) cost += run.length * run.length;
  }
  return cost + length * syntax > COST_MAX;
}

export function toHtml(text: string, isQuotes = false): string {
  return [...htmlOf(text, isQuotes)].join("");
}

/**
 * Yield the HTML of each block of a text, and "" wherever the caller may pause. A text that is nested too deeply, or
 * would freeze the page, becomes plain text. `window` is the number of characters that are split into blocks at once.
 */
export function* htmlOf(text: string, isQuotes = false, window = WINDOW): Generator<string> {
  const marked = isQuotes || !FORMULA_START.test(text) ? withoutFormulas : withFormulas;
  const blocks: Token[] = [];
  try {
    if (TOO_DEEP.test(text) || isCostly(text)) throw new RangeError();
    for (const block of blocksOf(text.replace(/\r\n?/gu, "\n"), marked, window)) {
      if (block) blocks.push(block);
      yield "";
    }
  } catch (error) {
    // Thrown above, or by the parser for a stack overflow.
    if (!(error instanceof RangeError)) throw error;
    yield plainHtml(text);
    return;
  }
  const parser = new marked.Parser(marked.defaults);
  for (const block of blocks) yield blockHtml(parser, block);
}

function blockHtml(parser: { parse(tokens: Token[]): unknown }, block: Token): string {
  try {
    return parser.parse([block]) as string;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return plainHtml(block.raw);
  }
}

/**
 * Yield undefined wherever the caller may pause, then the blocks of a text with their inline tokens. The lexer cannot
 * pause, so it gets one window of the text at a time. Blocks near the end of a window are lexed again with the next
 * window, because the last block may continue there, and a formula may start in one window and end in the next.
 */
function* blocksOf(text: string, marked: Marked, window: number): Generator<Token | undefined> {
  const links = Object.create(null) as Lexer["tokens"]["links"];
  const lexers = [];
  const blocks: Token[] = [];
  let size = window;
  for (let start = 0; start < text.length;) {
    const lexer = new marked.Lexer(marked.defaults);
    lexer.tokens.links = links;
    const blankLine = text.indexOf("\n\n", start + size);
    const end = blankLine < 0 ? text.length : blankLine + 2;
    lexer.blockTokens(text.slice(start, end), lexer.tokens);
    const complete = end < text.length ? blocksWithin(lexer.tokens, end - start - FORMULA_MAX) : lexer.tokens;
    yield undefined;
    size = complete.length > 0 ? window : size * 2;
    if (complete.length === 0) continue;
    start = end < text.length ? start + lengthOf(complete) : end;
    lexers.push(lexer);
    blocks.push(...complete);
  }
  for (const lexer of lexers)
    for (const { src, tokens } of lexer.inlineQueue) {
      lexer.inlineTokens(src, tokens);
      yield undefined;
    }
  yield* blocks;
}

/** Return the leading blocks that end within the first `length` characters. */
function blocksWithin(blocks: readonly Token[], length: number): Token[] {
  let end = 0;
  return blocks.slice(
    0,
    blocks.findIndex(({ raw }) => (end += raw.length) > length),
  );
}

const lengthOf = (blocks: readonly Token[]) => blocks.reduce((sum, { raw }) => sum + raw.length, 0);

function plainHtml(text: string): string {
  return `<p>${escaped(text).replaceAll("\n", "<br>")}</p>`;
}

/** A passage that an answer can cite: its number, and the name of its source. */
export interface CitedSource {
  n: number;
  name: string;
}

/** Convert a text to pieces of safe HTML, in which citations of `sources` are buttons. */
export function toSafeHtml(text: string, sources: readonly CitedSource[], isQuotes: boolean): string[] {
  return [...safeHtmlOf(text, sources, isQuotes)].filter(Boolean);
}

/** Yield pieces of safe HTML, each of one or more blocks, and "" wherever the caller may pause. See `toSafeHtml`. */
export function* safeHtmlOf(
  text: string,
  sources: readonly CitedSource[],
  isQuotes: boolean,
): Generator<string> {
  const addCitations = isQuotes ? quotationLinker(sources) : citationLinker(sources);
  const sanitize = (piece: string): string => {
    const fragment = DOMPurify.sanitize(piece, { ...ALLOWED, RETURN_DOM_FRAGMENT: true });
    for (const link of fragment.querySelectorAll("a")) {
      link.rel = "noopener noreferrer";
      link.target = "_blank";
    }
    addCitations(fragment);
    const container = document.createElement("div");
    container.append(fragment);
    return container.innerHTML;
  };
  let piece = "";
  for (const block of htmlOf(text, isQuotes)) {
    piece += block;
    if (piece.length < PIECE) yield "";
    else {
      yield sanitize(piece);
      piece = "";
    }
  }
  if (piece) yield sanitize(piece);
}

type Linker = (piece: DocumentFragment) => void;

/**
 * Return a function that replaces the numbers of `sources` in an answer, such as `[1]`, with buttons. Other numbers stay
 * text, because the model invented them, and so do numbers in code and links.
 */
function citationLinker(sources: readonly CitedSource[]): Linker {
  const indexes = new Map(sources.map(({ n }, index) => [n, index]));
  return (piece) => {
    if (indexes.size === 0) return;
    const walker = document.createTreeWalker(piece, NodeFilter.SHOW_TEXT);
    const texts: Text[] = [];
    while (walker.nextNode()) texts.push(walker.currentNode as Text);
    for (const text of texts) {
      if (text.parentElement?.closest("code, a")) continue;
      const parts = linkedParts(text.data, sources, indexes);
      if (parts) text.replaceWith(...parts);
    }
  };
}

/** Return the text with buttons for its citations, or null if it has none. */
function linkedParts(
  text: string,
  sources: readonly CitedSource[],
  indexes: ReadonlyMap<number, number>,
): (string | Node)[] | null {
  const parts: (string | Node)[] = [];
  let end = 0;
  for (const match of text.matchAll(CITATION)) {
    const numbers = numbersIn(match[1]!);
    if (!numbers.some((number) => indexes.has(number))) continue;
    parts.push(text.slice(end, match.index));
    for (const number of numbers) {
      const index = indexes.get(number);
      parts.push(
        index === undefined ? `[${number}]` : citationButton(String(number), sources[index]!.name, index),
      );
    }
    end = match.index + match[0].length;
  }
  return parts.length > 0 ? [...parts, text.slice(end)] : null;
}

/**
 * Return a function that must be called with all pieces in order. In each quotation, it replaces the last line, such as
 * `[1]`, with a button that shows the name of the source. Other numbers in brackets stay text, because they are part of
 * a document.
 */
function quotationLinker(sources: readonly CitedSource[]): Linker {
  let count = 0;
  return (piece) => {
    for (const quotation of [...piece.children].filter(({ localName }) => localName === "blockquote")) {
      const last = quotation.lastElementChild;
      const source = sources[count++];
      if (source !== undefined && last?.textContent === `[${count}]`)
        last.replaceChildren(citationButton(source.name, source.name, count - 1));
    }
  };
}

function citationButton(label: string, source: string, index: number): Node {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: label, title: source });
  button.dataset["citation"] = String(index);
  button.setAttribute("aria-label", label === source ? source : `${label}: ${source}`);
  return button;
}

/**
 * Return an extension that shows formulas as code, so that they can be copied into a program that typesets them. It
 * must not be used for quotations, in which "\[" is an escaped bracket (see core/text/escapeMarkdown.ts).
 */
function formulas(): MarkedExtension {
  return {
    extensions: [
      {
        name: "formula",
        level: "inline",
        start: (text) => text.slice(0, LOOKAHEAD).search(FORMULA_START),
        tokenizer: (text) => tokenOf("formula", INLINE_FORMULA.exec(text)),
        renderer: ({ text }) => `<code>${escaped(text)}</code>`,
      },
      {
        name: "formulas",
        level: "block",
        start: (text) => firstParagraph(text).search(/(?<=\n) {0,3}(?:\\\[|\$\$)/u),
        tokenizer: (text) => tokenOf("formulas", BLOCK_FORMULA.exec(text)),
        renderer: ({ text }) => `<pre><code>${escaped(text)}</code></pre>\n`,
      },
    ],
    // Mask formulas while emphasis is parsed, because "*" and "_" in a formula do not start or end emphasis.
    hooks: { emStrongMask: (text) => text.replace(FORMULAS, (formula) => "a".repeat(formula.length)) },
  };
}

/**
 * Return the first paragraph of a text. The parser searches once per paragraph, so searching the whole text each time
 * would take quadratic time.
 */
function firstParagraph(text: string): string {
  const end = text.indexOf("\n\n");
  return end < 0 ? text : text.slice(0, end + 2);
}

function tokenOf(type: string, match: RegExpExecArray | null) {
  return match ? { type, raw: match[0], text: match[1] ?? match[0] } : undefined;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/gu, (character) => `&#${character.charCodeAt(0)};`);
}
