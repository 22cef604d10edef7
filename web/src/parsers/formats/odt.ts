/**
 * OpenDocument text, as it is shown: headings become sections; a row of a table is a line; a note stands below what
 * refers to it. What stands above the pages is read once, before all of them, and what stands below them after all.
 */

import { Archive } from "./ooxml/zip_container.ts";
import { joined, ODT, part, Unreadable, type Part, type Read } from "../result.ts";
import { elements, every, find, type XmlNode } from "../markup/xml.ts";

const BLOCKS = new Set(["text:h", "text:p", "table:table-row"]);
/** Struck out; said about the text, not in it; how it is pronounced. */
const GONE = new Set(
  "text:tracked-changes text:script text:note-citation text:ruby-text office:annotation svg:title svg:desc".split(
    " ",
  ),
);
const SIGNS: Record<string, string> = { "text:s": " ", "text:tab": "\t", "text:line-break": "\n" };
const FAMILIES: Record<string, string> = {
  "text:h": "paragraph",
  "text:p": "paragraph",
  "text:span": "text",
};
const STANDARD = "Standard";
const PAGES = "style:master-page-name";

export function parse(data: Uint8Array): Read {
  const archive = new Archive(data);
  if (archive.mentions("META-INF/manifest.xml", "encryption-data")) throw new Unreadable("ENCRYPTED");
  const content = archive.xml("content.xml");
  const roots = [...(archive.has("styles.xml") ? [archive.xml("styles.xml")] : []), content];
  const reader = new Reader(showing(roots));
  const [body] = every(content, "office:text");
  const parts: Part[] = reader.around(roots, "header");
  let section: string | undefined;
  for (const block of body ? reader.blocks(body) : []) {
    const [text = "", ...below] = reader.said(block);
    if (block.name === "text:h" && text.trim()) section = text.trim();
    parts.push(part([text, ...below].join("\n"), { section }));
  }
  return { mimeType: ODT, parts: joined([...parts, ...reader.around(roots, "footer")]) };
}

/** Of each style that says so, whether what is written in it is shown. */
function showing(roots: readonly XmlNode[]): Map<string, boolean> {
  const styles = new Map<string, XmlNode>();
  for (const root of roots)
    for (const style of every(root, "style:style")) {
      const { attributes } = style;
      styles.set(`${attributes.get("style:family")} ${attributes.get("style:name")}`, style);
    }
  const shown = (style: XmlNode | undefined, seen = 0): boolean | undefined => {
    if (!style || seen >= 20) return undefined;
    const display = find(style, "style:text-properties")?.attributes.get("text:display");
    if (display !== undefined) return display !== "none";
    const { attributes } = style;
    const above = `${attributes.get("style:family")} ${attributes.get("style:parent-style-name")}`;
    return shown(styles.get(above), seen + 1);
  };
  const found = new Map<string, boolean>();
  for (const [name, style] of styles) {
    const is = shown(style);
    if (is !== undefined) found.set(name, is);
  }
  return found;
}

class Reader {
  constructor(private readonly shows: ReadonlyMap<string, boolean>) {}

  /** What stands above or below the pages that are used, each once. A number alone is that of the page. */
  around(roots: readonly XmlNode[], place: string): Part[] {
    const used = new Set([STANDARD, ...roots.flatMap(pagesUsed)]);
    const found = new Set<string>();
    for (const page of roots.flatMap((root) => [...every(root, "style:master-page")]))
      for (const side of used.has(page.attributes.get("style:name") ?? "") ? ["", "-first", "-left"] : [])
        for (const shown of elements(page)) {
          if (shown.name !== `style:${place}${side}` || shown.attributes.get("style:display") === "false")
            continue;
          const said = this.#lines(shown);
          if (/\p{L}/u.test(said)) found.add(said);
        }
    return [...found].map((said) => part(said));
  }

  /** Headings, paragraphs and rows that are shown. */
  *blocks(node: XmlNode): Generator<XmlNode> {
    for (const child of elements(node)) {
      if (BLOCKS.has(child.name)) yield child;
      else if (!GONE.has(child.name) && !isHidden(child)) yield* this.blocks(child);
    }
  }

  /** Its text, and the notes that stand below it. */
  said(block: XmlNode): string[] {
    const below: string[] = [];
    if (block.name !== "table:table-row") return [this.#words(block, true, below), ...below];
    const cells = elements(block).map((cell) =>
      [...this.blocks(cell)].map((inner) => this.#line(inner, below)).join(" "),
    );
    return [cells.join("\t"), ...below];
  }

  #lines(node: XmlNode): string {
    return [...this.blocks(node)]
      .map((block) => this.said(block).join("\n"))
      .join("\n")
      .trim();
  }

  #line(block: XmlNode, below: string[]): string {
    const [text = "", ...notes] = this.said(block);
    below.push(...notes);
    return text.trim();
  }

  /** In the order in which they stand; a paragraph of a text box is a line of its own. */
  #words(node: XmlNode, around: boolean, below: string[]): string {
    const style = `${FAMILIES[node.name] ?? ""} ${node.attributes.get("text:style-name")}`;
    const isShown = (this.shows.get(style) ?? around) && !isHidden(node);
    const inner = node.children.map((child) => {
      if (typeof child === "string") return isShown ? child : "";
      if (child.name === "text:note") {
        if (isShown) below.push(this.#lines(child));
        return "";
      }
      if (child.name === "draw:text-box")
        return isShown
          ? ["", ...[...this.blocks(child)].map((block) => this.#line(block, below)), ""].join("\n")
          : "";
      return GONE.has(child.name) ? "" : this.#words(child, isShown, below);
    });
    return (isShown ? (SIGNS[node.name] ?? "") : "") + inner.join("");
  }
}

function pagesUsed(node: XmlNode): string[] {
  const own = node.attributes.get(PAGES);
  return [...(own ? [own] : []), ...elements(node).flatMap(pagesUsed)];
}

/** Whether it, or a mark in it that hides all of it, says so. */
function isHidden(node: XmlNode): boolean {
  const mark = Object.hasOwn(FAMILIES, node.name) ? find(node, "text:hidden-paragraph") : undefined;
  const { attributes } = mark ?? node;
  return attributes.get("text:is-hidden") === "true" || attributes.get("text:display") === "none";
}
