/**
 * Parse OpenDocument text as it is displayed. Headings become sections, a table row becomes a line, and a note follows
 * the block with its reference. Each distinct page header appears once before the text, each footer once after it.
 */

import { Archive } from "./ooxml/zip_container.ts";
import { mergeSections, ODT, part, Unreadable, type Parsed, type Part } from "../result.ts";
import { elements, every, find, type XmlNode } from "../markup/xml.ts";

const BLOCKS = new Set(["text:h", "text:p", "table:table-row"]);
/** Elements that are not displayed: deleted text, comments, descriptions and pronunciation. */
const SKIPPED = new Set(
  "text:tracked-changes text:script text:note-citation text:ruby-text office:annotation svg:title svg:desc".split(
    " ",
  ),
);
const CHARACTERS: Record<string, string> = { "text:s": " ", "text:tab": "\t", "text:line-break": "\n" };
const FAMILIES: Record<string, string> = {
  "text:h": "paragraph",
  "text:p": "paragraph",
  "text:span": "text",
};
const STANDARD_PAGE = "Standard";
const PAGE_ATTRIBUTE = "style:master-page-name";

export function parse(data: Uint8Array): Parsed {
  const archive = new Archive(data);
  if (archive.mentions("META-INF/manifest.xml", "encryption-data")) throw new Unreadable("ENCRYPTED");
  const content = archive.xml("content.xml");
  const roots = [...(archive.has("styles.xml") ? [archive.xml("styles.xml")] : []), content];
  const reader = new Reader(styleVisibility(roots));
  const [body] = every(content, "office:text");
  const parts: Part[] = reader.headersOrFooters(roots, "header");
  let section: string | undefined;
  for (const block of body ? reader.blocks(body) : []) {
    const [text = "", ...notes] = reader.textAndNotes(block);
    if (block.name === "text:h" && text.trim()) section = text.trim();
    parts.push(part([text, ...notes].join("\n"), { section }));
  }
  return { mimeType: ODT, parts: mergeSections([...parts, ...reader.headersOrFooters(roots, "footer")]) };
}

/** Map styles to whether their text is displayed. Styles that neither specify nor inherit this are left out. */
function styleVisibility(roots: readonly XmlNode[]): Map<string, boolean> {
  const styles = new Map<string, XmlNode>();
  for (const root of roots)
    for (const style of every(root, "style:style")) {
      const { attributes } = style;
      styles.set(`${attributes.get("style:family")} ${attributes.get("style:name")}`, style);
    }
  const isDisplayed = (style: XmlNode | undefined, depth = 0): boolean | undefined => {
    if (!style || depth >= 20) return undefined;
    const display = find(style, "style:text-properties")?.attributes.get("text:display");
    if (display !== undefined) return display !== "none";
    const { attributes } = style;
    const parent = `${attributes.get("style:family")} ${attributes.get("style:parent-style-name")}`;
    return isDisplayed(styles.get(parent), depth + 1);
  };
  const visibility = new Map<string, boolean>();
  for (const [name, style] of styles) {
    const displayed = isDisplayed(style);
    if (displayed !== undefined) visibility.set(name, displayed);
  }
  return visibility;
}

class Reader {
  constructor(private readonly styleVisibility: ReadonlyMap<string, boolean>) {}

  /** Return each distinct header or footer of the used page styles. Leave out those without letters: page numbers. */
  headersOrFooters(roots: readonly XmlNode[], kind: "header" | "footer"): Part[] {
    const used = new Set([STANDARD_PAGE, ...roots.flatMap(pageStylesOf)]);
    const texts = new Set<string>();
    for (const page of roots.flatMap((root) => [...every(root, "style:master-page")]))
      for (const side of used.has(page.attributes.get("style:name") ?? "") ? ["", "-first", "-left"] : [])
        for (const element of elements(page)) {
          if (element.name !== `style:${kind}${side}` || element.attributes.get("style:display") === "false")
            continue;
          const text = this.#lines(element);
          if (/\p{L}/u.test(text)) texts.add(text);
        }
    return [...texts].map((text) => part(text));
  }

  /** Yield the displayed headings, paragraphs and table rows in an element. */
  *blocks(node: XmlNode): Generator<XmlNode> {
    for (const child of elements(node)) {
      if (BLOCKS.has(child.name)) yield child;
      else if (!SKIPPED.has(child.name) && !isHidden(child)) yield* this.blocks(child);
    }
  }

  /** Return the text of a block, followed by the texts of its notes. */
  textAndNotes(block: XmlNode): string[] {
    const notes: string[] = [];
    if (block.name !== "table:table-row") return [this.#text(block, true, notes), ...notes];
    const cells = elements(block).map((cell) =>
      [...this.blocks(cell)].map((inner) => this.#line(inner, notes)).join(" "),
    );
    return [cells.join("\t"), ...notes];
  }

  #lines(node: XmlNode): string {
    return [...this.blocks(node)]
      .map((block) => this.textAndNotes(block).join("\n"))
      .join("\n")
      .trim();
  }

  #line(block: XmlNode, notes: string[]): string {
    const [text = "", ...ownNotes] = this.textAndNotes(block);
    notes.push(...ownNotes);
    return text.trim();
  }

  /** Return the text of a node and add its notes to `notes`. Each paragraph of a text box becomes a separate line. */
  #text(node: XmlNode, isParentDisplayed: boolean, notes: string[]): string {
    const style = `${FAMILIES[node.name] ?? ""} ${node.attributes.get("text:style-name")}`;
    const isDisplayed = (this.styleVisibility.get(style) ?? isParentDisplayed) && !isHidden(node);
    const inner = node.children.map((child) => {
      if (typeof child === "string") return isDisplayed ? child : "";
      if (child.name === "text:note") {
        if (isDisplayed) notes.push(this.#lines(child));
        return "";
      }
      if (child.name === "draw:text-box")
        return isDisplayed
          ? ["", ...[...this.blocks(child)].map((block) => this.#line(block, notes)), ""].join("\n")
          : "";
      return SKIPPED.has(child.name) ? "" : this.#text(child, isDisplayed, notes);
    });
    return (isDisplayed ? (CHARACTERS[node.name] ?? "") : "") + inner.join("");
  }
}

function pageStylesOf(node: XmlNode): string[] {
  const own = node.attributes.get(PAGE_ATTRIBUTE);
  return [...(own ? [own] : []), ...elements(node).flatMap(pageStylesOf)];
}

/** Return whether a node is hidden by its own attributes or by those of a `text:hidden-paragraph` that it contains. */
function isHidden(node: XmlNode): boolean {
  const field = Object.hasOwn(FAMILIES, node.name) ? find(node, "text:hidden-paragraph") : undefined;
  const { attributes } = field ?? node;
  return attributes.get("text:is-hidden") === "true" || attributes.get("text:display") === "none";
}
