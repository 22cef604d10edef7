/** HTML: the words that are shown, headings as sections. No tree is made, so a page may be nested very deep. */

import { decode } from "../charset/detect.ts";
import { decodeHtml } from "../markup/characterEntities.ts";
import { HTML, part, type Part, type Read } from "../result.ts";
import { attributesOf, scan, type Listener } from "../markup/tagScanner.ts";

const words = (text: string) => new Set(text.split(" "));
const UNSEEN = words("script style template noscript svg math iframe object title");
const RAW = words("script style title textarea iframe");
const VOID = words("area base br col embed hr img input link meta param source track wbr");
const HEADINGS = words("h1 h2 h3 h4 h5 h6");
const PARAGRAPHS = words("p table pre section"); // with an empty line before them
const BLOCKS = words(
  "h1 h2 h3 h4 h5 h6 p div li ul ol dl dt dd table tr pre blockquote hr address section article header " +
    "footer nav aside main figure figcaption form details summary body html",
);
const LINES = words("caption legend option"); // no blocks, but no words of what is beside them
/** What ends by itself where one of these begins, unless one of the last column lies between. */
const IMPLIED: [begins: Set<string>, ends: Set<string>, within: Set<string>][] = [
  [BLOCKS, words("p"), words("td th li dd table button object")],
  [words("li"), words("li"), words("ul ol menu")],
  [words("dt"), words("dd"), words("dl")], // as libxml2 has it, which reads them on the server
  [words("dd"), words("dt"), words("dl")],
  [words("td th"), words("td th"), words("table tr")],
  [words("tr tbody thead tfoot"), words("tr"), words("table")],
  [words("option"), words("option"), words("select")],
];
const NEAR = 100; // tags that are looked at for one that ends by itself
const BLANKS = /[ \t\n\f\r]+/gu;
const ANCHORS = /(?<![ ¶])[ ¶]+$/u; // many manuals put a link to itself behind a heading
const HIDDEN_STYLES = ["display:none", "visibility:hidden"];

export function parse(data: Uint8Array): Read {
  return { mimeType: HTML, parts: htmlParts(decode(data)) };
}

/** Parts by heading; the title of the page is the first section. */
export function htmlParts(text: string): Part[] {
  const page = new Page();
  scan(text, page, RAW);
  page.close();
  return page.parts;
}

class Page implements Listener {
  readonly parts: Part[] = [];
  #pieces: string[] = []; // of the part that is being read
  #title: string | undefined;
  #section: string | undefined;
  #inHeading = false;
  readonly #open: string[] = [];
  readonly #count = new Map<string, number>(); // how many of a name are open
  #unseenFrom = Infinity; // how many tags are open around the first that is not shown

  start(written: string, attributes: string, closed: boolean): void {
    const name = written.toLowerCase();
    this.#endImplied(name);
    if (name === "br" && !this.#isUnseen()) this.#pieces.push("\n");
    if (!this.#isUnseen() && (UNSEEN.has(name) || isHidden(attributes))) this.#unseenFrom = this.#open.length;
    this.#open.push(name);
    this.#count.set(name, (this.#count.get(name) ?? 0) + 1);
    if (!this.#isUnseen()) this.#begin(name);
    if (closed || VOID.has(name)) this.#endLast();
  }

  end(written: string): void {
    const name = written.toLowerCase();
    if (this.#count.get(name)) this.#endTo(this.#open.lastIndexOf(name));
  }

  text(text: string, literal: boolean): void {
    const said = literal ? text : decodeHtml(text);
    // A line break in the source is a blank on the page.
    if (!this.#isUnseen()) this.#pieces.push(this.#count.get("pre") ? said : said.replace(BLANKS, " "));
    else if (this.#open.at(-1) === "title" && this.#unseenFrom === this.#open.length - 1)
      this.#section = this.#title = tidied((this.#title ?? "") + said) || undefined;
  }

  /** The end of the page, or of a part of it. */
  close(): void {
    this.#nameSection();
    const lines = this.#pieces.join("").split("\n").map(tidied);
    this.#pieces = [];
    const text = lines
      .join("\n")
      .replace(/\n{3,}/gu, "\n\n")
      .trim();
    if (text) this.parts.push(part(text, { section: this.#section }));
  }

  #begin(name: string): void {
    if (HEADINGS.has(name)) {
      this.close();
      this.#inHeading = true;
    } else if (name === "main") this.#leaveSection();
    else if (LINES.has(name)) this.#pieces.push("\n");
    else if (BLOCKS.has(name)) this.#pieces.push(PARAGRAPHS.has(name) ? "\n\n" : "\n");
  }

  #endTo(depth: number): void {
    while (this.#open.length > depth) this.#endLast();
  }

  #endLast(): void {
    const name = this.#open.pop()!;
    this.#count.set(name, this.#count.get(name)! - 1);
    if (this.#isUnseen()) {
      if (this.#open.length <= this.#unseenFrom) this.#unseenFrom = Infinity;
    } else if (name === "td" || name === "th") this.#pieces.push("\t");
    else if (LINES.has(name)) this.#pieces.push("\n");
    else if (name === "main") this.#leaveSection();
    else if (BLOCKS.has(name)) {
      if (HEADINGS.has(name)) this.#nameSection();
      this.#pieces.push(HEADINGS.has(name) || name === "p" ? "\n\n" : "\n");
    }
  }

  #endImplied(name: string): void {
    for (const [begins, ends, within] of IMPLIED) {
      if (!begins.has(name) || ![...ends].some((one) => this.#count.get(one))) continue;
      const near = this.#open.slice(-NEAR);
      const at = near.findLastIndex((one) => ends.has(one) || within.has(one));
      if (at >= 0 && ends.has(near[at]!)) this.#endTo(this.#open.length - near.length + at);
    }
  }

  #isUnseen(): boolean {
    return this.#unseenFrom < Infinity;
  }

  /** A menu before the main part, and a footer behind it, have headings that say nothing of what follows. */
  #leaveSection(): void {
    this.close();
    this.#section = this.#title;
  }

  #nameSection(): void {
    if (this.#inHeading) this.#section = tidied(this.#pieces.join("")).replace(ANCHORS, "") || this.#section;
    this.#inHeading = false;
  }
}

function tidied(text: string): string {
  return text.trim().replace(/\s+/gu, " ");
}

function isHidden(written: string): boolean {
  if (!/hidden|style/iu.test(written)) return false;
  for (const [name, value] of attributesOf(written)) {
    const key = name.toLowerCase();
    if (key === "hidden" || (key === "aria-hidden" && value === "true")) return true;
    const style = key === "style" ? value.replace(/\s/gu, "").toLowerCase() : "";
    if (HIDDEN_STYLES.some((hidden) => style.includes(hidden))) return true;
  }
  return false;
}
