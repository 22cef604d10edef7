/** Parse the visible text of HTML. Headings become sections. Elements may be nested very deeply: no tree is built. */

import { decode } from "../charset/detect.ts";
import { decodeHtml } from "../markup/characterEntities.ts";
import { HTML, part, type Parsed, type Part } from "../result.ts";
import { attributesOf, scan, type Listener } from "../markup/tagScanner.ts";

const words = (text: string) => new Set(text.split(" "));
const INVISIBLE = words("script style template noscript svg math iframe object title");
const RAW = words("script style title textarea iframe");
const VOID = words("area base br col embed hr img input link meta param source track wbr");
const HEADINGS = words("h1 h2 h3 h4 h5 h6");
const PARAGRAPHS = words("p table pre section"); // preceded by an empty line
const BLOCKS = words(
  "h1 h2 h3 h4 h5 h6 p div li ul ol dl dt dd table tr pre blockquote hr address section article header " +
    "footer nav aside main figure figcaption form details summary body html",
);
/** Elements that are not block elements but are displayed on separate lines. */
const LINES = words("caption legend option");
/**
 * Implied end tags. The start tag of an element in `starts` ends the innermost open element in `ends`, unless an
 * element in `barriers` is open inside it.
 */
const IMPLIED_ENDS: [starts: Set<string>, ends: Set<string>, barriers: Set<string>][] = [
  [BLOCKS, words("p"), words("td th li dd table button object")],
  [words("li"), words("li"), words("ul ol menu")],
  // Unlike in the HTML standard, a dt does not end another dt: libxml2, the server's parser, does the same.
  [words("dt"), words("dd"), words("dl")],
  [words("dd"), words("dt"), words("dl")],
  [words("td th"), words("td th"), words("table tr")],
  [words("tr tbody thead tfoot"), words("tr"), words("table")],
  [words("option"), words("option"), words("select")],
];
/** Number of innermost open elements that are searched for one with an implied end tag. */
const SEARCH_DEPTH = 100;
const BLANKS = /[ \t\n\f\r]+/gu;
/** Pattern of the text of a link to the heading itself, which many manuals show at the end of a heading. */
const HEADING_ANCHOR = /(?<![ ¶])[ ¶]+$/u;
const HIDDEN_STYLES = ["display:none", "visibility:hidden"];

export function parse(data: Uint8Array): Parsed {
  return { mimeType: HTML, parts: htmlParts(decode(data)) };
}

/** Return one part for the text before the first heading, whose section is the title, and one part per heading. */
export function htmlParts(text: string): Part[] {
  const page = new PageReader();
  scan(text, page, RAW);
  page.close();
  return page.parts;
}

class PageReader implements Listener {
  readonly parts: Part[] = [];
  #pieces: string[] = []; // the text of the current part
  #title: string | undefined;
  #section: string | undefined;
  #inHeading = false;
  readonly #open: string[] = [];
  readonly #openCount = new Map<string, number>(); // number of open elements by name
  #invisibleDepth = Infinity; // depth of the outermost open element that is not visible

  start(tagName: string, attributes: string, closed: boolean): void {
    const name = tagName.toLowerCase();
    this.#closeImplied(name);
    if (name === "br" && this.#isVisible()) this.#pieces.push("\n");
    if (this.#isVisible() && (INVISIBLE.has(name) || isHidden(attributes)))
      this.#invisibleDepth = this.#open.length;
    this.#open.push(name);
    this.#openCount.set(name, (this.#openCount.get(name) ?? 0) + 1);
    if (this.#isVisible()) this.#startBlock(name);
    if (closed || VOID.has(name)) this.#closeLast();
  }

  end(tagName: string): void {
    const name = tagName.toLowerCase();
    if (this.#openCount.get(name)) this.#closeTo(this.#open.lastIndexOf(name));
  }

  text(source: string, literal: boolean): void {
    const text = literal ? source : decodeHtml(source);
    // Outside `pre`, a line break in the source is displayed as a space.
    if (this.#isVisible()) this.#pieces.push(this.#openCount.get("pre") ? text : text.replace(BLANKS, " "));
    else if (this.#open.at(-1) === "title" && this.#invisibleDepth === this.#open.length - 1)
      this.#section = this.#title = collapseSpaces((this.#title ?? "") + text) || undefined;
  }

  /** End the current part. */
  close(): void {
    this.#nameSection();
    const lines = this.#pieces.join("").split("\n").map(collapseSpaces);
    this.#pieces = [];
    const text = lines
      .join("\n")
      .replace(/\n{3,}/gu, "\n\n")
      .trim();
    if (text) this.parts.push(part(text, { section: this.#section }));
  }

  #startBlock(name: string): void {
    if (HEADINGS.has(name)) {
      this.close();
      this.#inHeading = true;
    } else if (name === "main") this.#leaveSection();
    else if (LINES.has(name)) this.#pieces.push("\n");
    else if (BLOCKS.has(name)) this.#pieces.push(PARAGRAPHS.has(name) ? "\n\n" : "\n");
  }

  #closeTo(depth: number): void {
    while (this.#open.length > depth) this.#closeLast();
  }

  #closeLast(): void {
    const name = this.#open.pop()!;
    this.#openCount.set(name, this.#openCount.get(name)! - 1);
    if (!this.#isVisible()) {
      if (this.#open.length <= this.#invisibleDepth) this.#invisibleDepth = Infinity;
    } else if (name === "td" || name === "th") this.#pieces.push("\t");
    else if (LINES.has(name)) this.#pieces.push("\n");
    else if (name === "main") this.#leaveSection();
    else if (BLOCKS.has(name)) {
      if (HEADINGS.has(name)) this.#nameSection();
      this.#pieces.push(HEADINGS.has(name) || name === "p" ? "\n\n" : "\n");
    }
  }

  #closeImplied(name: string): void {
    for (const [starts, ends, barriers] of IMPLIED_ENDS) {
      if (!starts.has(name) || ![...ends].some((end) => this.#openCount.get(end))) continue;
      const innermost = this.#open.slice(-SEARCH_DEPTH);
      const index = innermost.findLastIndex((open) => ends.has(open) || barriers.has(open));
      if (index >= 0 && ends.has(innermost[index]!))
        this.#closeTo(this.#open.length - innermost.length + index);
    }
  }

  #isVisible(): boolean {
    return this.#invisibleDepth === Infinity;
  }

  /**
   * End the current part and use the title as section again, because a heading before `main`, such as one in a menu, is
   * not the heading of `main`.
   */
  #leaveSection(): void {
    this.close();
    this.#section = this.#title;
  }

  #nameSection(): void {
    if (this.#inHeading)
      this.#section = collapseSpaces(this.#pieces.join("")).replace(HEADING_ANCHOR, "") || this.#section;
    this.#inHeading = false;
  }
}

function collapseSpaces(text: string): string {
  return text.trim().replace(/\s+/gu, " ");
}

function isHidden(attributes: string): boolean {
  if (!/hidden|style/iu.test(attributes)) return false;
  for (const [name, value] of attributesOf(attributes)) {
    const key = name.toLowerCase();
    if (key === "hidden" || (key === "aria-hidden" && value === "true")) return true;
    const style = key === "style" ? value.replace(/\s/gu, "").toLowerCase() : "";
    if (HIDDEN_STYLES.some((hidden) => style.includes(hidden))) return true;
  }
  return false;
}
