/**
 * Parse DOCX as Word displays it: with insertions and generated numbers, and without deleted and hidden text. Headings
 * become sections. A note follows the paragraph or table that refers to it. Each distinct page header appears once
 * before the text, each footer once after it.
 */

import { Archive } from "./zip_container.ts";
import { Graphics } from "./charts.ts";
import { decode } from "../../charset/detect.ts";
import { htmlParts } from "../html.ts";
import { NumberCounter, Numbering } from "./docx_numbering.ts";
import {
  DOCX,
  HTML,
  isOutOfMemory,
  mergeSections,
  part,
  RTF,
  Unreadable,
  type Code,
  type Parsed,
  type Part,
} from "../../result.ts";
import { isOn, value } from "./docx_properties.ts";
import { byType, mainOf, relationsOf, type Relation } from "./package.ts";
import { parse as parseRtf } from "../rtf.ts";
import { sniff } from "../../file_type.ts";
import { elements, every, find, ownText, topmost, type XmlNode } from "../../markup/xml.ts";

const BLOCKS = new Set(["w:p", "w:tbl"]);
/** Element for an embedded file. Word displays the file's contents in place of the element. */
const CHUNK = "w:altChunk";
const BLOCKS_AND_CHUNKS = new Set([...BLOCKS, CHUNK]);
/** Codes of errors in an embedded file that do not make the document unreadable. */
const CHUNK_ERRORS = new Set<Code>(["DAMAGED", "EMPTY", "UNSUPPORTED_TYPE", "GARBLED"]);
/** Elements with the text of runs and of formulas. */
const TEXT = new Set(["w:t", "m:t"]);
/** Name of the elements that are inserted into paragraphs for generated numbers. Documents never have it there. */
const NUMBER = "w:lvlText";
const ROW = new Set(["w:tr"]);
const CELL = new Set(["w:tc"]);
/** Elements without displayed text: deleted and moved text, properties, pronunciation, and copies for old programs. */
const SKIPPED = new Set(["w:del", "w:moveFrom", "w:pPr", "w:rPr", "w:sectPr", "w:rt", "mc:Fallback"]);
/** `SKIPPED` and nested paragraphs: for the text of a paragraph without the text boxes in it. */
const SKIPPED_AND_BOXES = new Set([...SKIPPED, "w:p"]);
const SHAPES = new Set(["inline", "anchor", "wsp"]);
const CHARACTERS: Record<string, string> = {
  "w:tab": "\t",
  "w:br": "\n",
  "w:cr": "\n",
  "w:noBreakHyphen": "-",
  "w:ptab": "\t",
};
/** Pattern of a character that neither Python nor JavaScript treats as whitespace. */
const NON_BLANK = /[^\s\x85\ufeff]/u;
const HEADING = /^(heading [1-9]$|Heading|Title)/u;

const MAIN = "word/document.xml"; // some programs name it document2.xml
const REFERENCES = new Set(["w:footnoteReference", "w:endnoteReference"]);

/**
 * Function that changes a tree to what Word displays: it removes hidden elements and inserts generated numbers. Numbers
 * continue from one tree to the next tree that the same function changes.
 */
type Prepare = (root: XmlNode) => void;

export function parse(data: Uint8Array): Parsed {
  return { mimeType: DOCX, parts: partsOf(data) };
}

/**
 * Return the parts of a document. If `isChunk` is true, the document is embedded in another one, and files that are
 * embedded in it are skipped.
 */
function partsOf(data: Uint8Array, isChunk = false): Part[] {
  const archive = new Archive(data);
  const main = mainOf(archive, MAIN);
  const body = find(archive.xml(main), "w:body");
  if (!body) throw new Unreadable("DAMAGED");
  const relations = relationsOf(archive, main);
  const styles = archive.optionalXml(byType(relations, "styles"));
  const headings = styles ? headingsOf(styles) : new Set();
  const hidden = styles ? hiddenStyles(styles) : new Set<string>();
  const numbering = numberingOf(archive, relations, styles);
  const newStory = (): Prepare => {
    const counter = numbering && new NumberCounter(numbering);
    return (root) => {
      removeHidden(root, hidden);
      if (counter) insertNumbers(root, counter, hidden);
    };
  };
  newStory()(body);
  insertGraphicsText(body, new Graphics(archive), relations);
  const notes = notesOf(archive, relations, newStory);
  const prepare = newStory(); // one function for all headers and footers, so that their numbers continue
  const headersOrFootersOf = (kind: "header" | "footer") =>
    headersOrFooters(archive, relations, body, kind, prepare);
  const parts = headersOrFootersOf("header");
  let section: string | undefined;
  for (const block of topmost(body, BLOCKS_AND_CHUNKS, SKIPPED)) {
    if (block.name === CHUNK) {
      const chunkParts = isChunk ? [] : chunkOf(archive, relations, block);
      parts.push(
        ...chunkParts.map((chunkPart) => part(chunkPart.text, { section: chunkPart.section ?? section })),
      );
      continue;
    }
    const text = textOf(block);
    const style = find(block, "w:pPr", "w:pStyle")?.attributes.get("w:val");
    const withoutNumber = text.slice(ownText(find(block, NUMBER)).length).trim();
    if (headings.has(style) && withoutNumber) section = text.trim();
    const ownNotes = [...topmost(block, REFERENCES, SKIPPED)].map((reference) =>
      takeNote(notes, keyOf(reference)),
    );
    parts.push(part([text, ...ownNotes.filter(Boolean)].join("\n"), { section }));
  }
  return mergeSections([...parts, ...headersOrFootersOf("footer")]);
}

/** Return the parts of an embedded file: HTML, RTF, plain text or DOCX. Other files have no parts. */
function chunkOf(archive: Archive, relations: readonly Relation[], chunk: XmlNode): Part[] {
  const relation = relations.find(({ id }) => id === chunk.attributes.get("r:id"));
  if (!relation || !archive.has(relation.target)) return [];
  try {
    const data = archive.bytes(relation.target);
    const mimeType = sniff(data, relation.target);
    if (mimeType === DOCX) return partsOf(data, true);
    if (mimeType === HTML) return htmlParts(decode(data));
    if (mimeType === RTF) return parseRtf(data).parts;
    return mimeType === "text/plain" ? [part(decode(data))] : [];
  } catch (error) {
    if (isOutOfMemory(error) || (error instanceof Unreadable && !CHUNK_ERRORS.has(error.code))) throw error;
    return [];
  }
}

function headingsOf(styles: XmlNode): Set<string | undefined> {
  const isHeading = (style: XmlNode) => HEADING.test(find(style, "w:name")?.attributes.get("w:val") ?? "");
  return new Set(
    [...every(styles, "w:style")].filter(isHeading).map((style) => style.attributes.get("w:styleId")),
  );
}

/** Return the ids of styles that hide text, by their own properties or by those of a style that they are based on. */
function hiddenStyles(root: XmlNode): Set<string> {
  const nodes = elements(root).filter(({ name }) => name === "w:style");
  const styles = new Map(nodes.map((style) => [style.attributes.get("w:styleId") ?? "", style]));
  const isHidden = (style: XmlNode | undefined, depth = 0): boolean => {
    if (!style || depth > 20) return false;
    const own = isOn(find(style, "w:rPr"), "w:vanish");
    return own ?? isHidden(styles.get(find(style, "w:basedOn")?.attributes.get("w:val") ?? ""), depth + 1);
  };
  return new Set([...styles].filter(([, style]) => isHidden(style)).map(([name]) => name));
}

/** Remove hidden runs, rows and shapes from a tree. */
function removeHidden(node: XmlNode, styles: ReadonlySet<string>, isParagraphHidden = false): void {
  const style = node.name === "w:p" ? find(node, "w:pPr", "w:pStyle")?.attributes.get("w:val") : undefined;
  const inHidden = node.name === "w:p" ? styles.has(style ?? "") : isParagraphHidden;
  const isHidden = (child: XmlNode) => {
    if (SHAPES.has(child.name)) return isShapeHidden(child);
    if (child.name === "w:tr") return isOn(find(child, "w:trPr"), "w:hidden") ?? false;
    if (child.name !== "w:r") return false;
    const properties = find(child, "w:rPr");
    const isStyleHidden = styles.has(find(properties, "w:rStyle")?.attributes.get("w:val") ?? "");
    // w:vanish is a toggle property: set in both the paragraph and the character style, it cancels out.
    return isOn(properties, "w:vanish") ?? isStyleHidden !== inHidden;
  };
  node.children = node.children.filter((child) => typeof child === "string" || !isHidden(child));
  for (const child of elements(node)) removeHidden(child, styles, inHidden);
}

function isShapeHidden(shape: XmlNode): boolean {
  const properties = find(shape, "docPr") ?? find(shape, "cNvPr");
  return ["1", "true"].includes(properties?.attributes.get("hidden") ?? "");
}

/** Return the numbering of a document, or undefined if the document has no numbering or it is damaged. */
function numberingOf(
  archive: Archive,
  relations: readonly Relation[],
  styles: XmlNode | undefined,
): Numbering | undefined {
  try {
    const root = archive.optionalXml(byType(relations, "numbering"));
    return root && new Numbering(root, styles);
  } catch (error) {
    if (isOutOfMemory(error)) throw error;
    return undefined;
  }
}

/**
 * Insert the number that Word displays before each paragraph. Word does not display an empty paragraph whose mark is
 * hidden, so it gets no number.
 */
function insertNumbers(root: XmlNode, counter: NumberCounter, hidden: ReadonlySet<string>): void {
  for (const [paragraph, isInBox] of paragraphs(root)) {
    const textNodes = [...topmost(paragraph, TEXT, SKIPPED_AND_BOXES)];
    const hasText = textNodes.some((node) => NON_BLANK.test(ownText(node)));
    const isDisplayed = hasText || !isMarkHidden(paragraph, hidden);
    const number = isDisplayed ? counter.number(paragraph, hasText, isInBox) : "";
    if (number) paragraph.children.unshift(newNode(NUMBER, [number]));
  }
}

/** Yield all paragraphs in order, including nested ones, each with whether it is in a text box. */
function* paragraphs(node: XmlNode, isInBox = false): Generator<[XmlNode, boolean]> {
  for (const child of elements(node)) {
    if (child.name === "w:p") yield [child, isInBox];
    if (!SKIPPED.has(child.name)) yield* paragraphs(child, isInBox || child.name === "w:txbxContent");
  }
}

/** Return whether the mark at the end of a paragraph was deleted, moved or hidden. */
function isMarkHidden(paragraph: XmlNode, hidden: ReadonlySet<string>): boolean {
  const properties = find(paragraph, "w:pPr");
  const markProperties = find(properties, "w:rPr");
  if (find(markProperties, "w:del") || find(markProperties, "w:moveFrom")) return true;
  return isOn(markProperties, "w:vanish") ?? hidden.has(value(properties, "w:pStyle"));
}

/** Insert the text of charts and diagrams into the tree, as text boxes. */
function insertGraphicsText(node: XmlNode, graphics: Graphics, relations: readonly Relation[]): void {
  for (const graphic of [...every(node, "a:graphicData")]) {
    const lines = graphics.lines(graphic, relations);
    const paragraphs = lines.map((line) => newNode("w:p", [newNode("w:t", [line])]));
    if (lines.length > 0) graphic.children.push(newNode("w:txbxContent", paragraphs));
  }
}

function newNode(name: string, children: XmlNode["children"]): XmlNode {
  return { name, attributes: new Map(), children };
}

/** Return each distinct header or footer that is displayed. Leave out those without letters, which are page numbers. */
function headersOrFooters(
  archive: Archive,
  allRelations: readonly Relation[],
  body: XmlNode,
  kind: "header" | "footer",
  prepare: Prepare,
): Part[] {
  const relations = allRelations.filter(({ target }) => archive.has(target));
  const settings = archive.optionalXml(byType(relations, "settings"));
  const oddAndEven = settings && isOn(settings, "w:evenAndOddHeaders");
  const texts = new Set<string>();
  const targets = new Set<string>();
  for (const section of every(body, "w:sectPr")) {
    const isDisplayed: Record<string, unknown> = {
      default: true,
      first: isOn(section, "w:titlePg"),
      even: oddAndEven,
    };
    for (const { name, attributes } of elements(section)) {
      const relation = relations.find(({ id }) => id === attributes.get("r:id"));
      if (name !== `w:${kind}Reference` || !relation || !isDisplayed[attributes.get("w:type") ?? "default"])
        continue;
      if (targets.has(relation.target)) continue;
      targets.add(relation.target);
      const root = archive.optionalXml([relation.target]);
      if (!root) continue;
      prepare(root);
      const text = blocksText(root).trim();
      if (/\p{L}/u.test(text)) texts.add(text);
    }
  }
  return [...texts].map((text) => part(text));
}

/** Map the keys of notes to the texts of the notes (see `keyOf`). Damaged notes are left out. */
function notesOf(
  archive: Archive,
  relations: readonly Relation[],
  newStory: () => Prepare,
): Map<string, string> {
  const notes = new Map<string, string>();
  for (const target of [...byType(relations, "footnotes"), ...byType(relations, "endnotes")]) {
    const root = archive.optionalXml([target]);
    if (!root) continue;
    newStory()(root);
    for (const note of elements(root)) notes.set(keyOf(note), blocksText(note).trim());
  }
  return notes;
}

function blocksText(node: XmlNode): string {
  return [...topmost(node, BLOCKS, SKIPPED)].map(textOf).join("\n");
}

/** Return the text of a note and remove it from the map, so that a note with several references appears only once. */
function takeNote(notes: Map<string, string>, key: string): string {
  const text = notes.get(key) ?? "";
  notes.delete(key);
  return text;
}

/** Return the key of a note, which is the same for the note and for all references to it. */
function keyOf({ name, attributes }: XmlNode): string {
  return `${name.replace("Reference", "")} ${attributes.get("w:id")}`;
}

/** Return the text of a paragraph or table. A table has one line per row, which includes tables in its cells. */
function textOf(block: XmlNode): string {
  if (block.name === "w:p") return paragraphText(block);
  const rows = [...topmost(block, ROW, SKIPPED)];
  return rows.map((row) => [...topmost(row, CELL, SKIPPED)].map(cellText).join("\t")).join("\n");
}

function cellText(cell: XmlNode): string {
  const text = [...topmost(cell, BLOCKS, SKIPPED)].map(textOf).join(" ");
  return text.trim().replace(/\s+/gu, " ");
}

function paragraphText(node: XmlNode): string {
  return elements(node)
    .filter(({ name }) => !SKIPPED.has(name))
    .map((child) => {
      if (TEXT.has(child.name) || child.name === NUMBER) return ownText(child);
      if (child.name === "w:txbxContent") return `\n${blocksText(child)}\n`;
      return (CHARACTERS[child.name] ?? "") + paragraphText(child);
    })
    .join("");
}
