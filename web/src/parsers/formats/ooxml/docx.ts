/**
 * DOCX, as Word shows it: what was inserted is read; what was struck out or hidden is not. Headings become sections. The
 * numbers that Word makes are written out. A note stands below the paragraph or table that refers to it; what stands above
 * the pages is read once, before all of them, and what stands below them after all.
 */

import { Archive } from "./zip_container.ts";
import { Drawn } from "./charts.ts";
import { decode } from "../../charset/detect.ts";
import { htmlParts } from "../html.ts";
import { Counting, Numbering } from "./docx_numbering.ts";
import {
  DOCX,
  HTML,
  isOutOfMemory,
  joined,
  part,
  RTF,
  Unreadable,
  type Code,
  type Part,
  type Read,
} from "../../result.ts";
import { isOn, value } from "./docx_properties.ts";
import { byType, mainOf, relationsOf, type Relation } from "./package.ts";
import { parse as parseRtf } from "../rtf.ts";
import { sniff } from "../../file_type.ts";
import { elements, every, find, letters, topmost, type XmlNode } from "../../markup/xml.ts";

const BLOCKS = new Set(["w:p", "w:tbl"]);
const CHUNK = "w:altChunk"; // a file within the document, which Word shows in its place
const BLOCKS_AND_CHUNKS = new Set([...BLOCKS, CHUNK]);
/** Why a chunk cannot be read; the rest of the document is read all the same. */
const LOST = new Set<Code>(["DAMAGED", "EMPTY", "UNSUPPORTED_TYPE", "GARBLED"]);
const LETTERS = new Set(["w:t", "m:t"]); // those of a formula, too
const NUMBER = "w:lvlText"; // of a paragraph, where it is written out; no document has one there
const ROW = new Set(["w:tr"]);
const CELL = new Set(["w:tc"]);
/** Struck out, or moved away; properties (whose tabs are stops and not signs); how a sign is pronounced; a second copy. */
const GONE = new Set(["w:del", "w:moveFrom", "w:pPr", "w:rPr", "w:sectPr", "w:rt", "mc:Fallback"]);
const OUTSIDE = new Set([...GONE, "w:p"]); // a paragraph's own words are not those of a box in it
const SHAPES = new Set(["inline", "anchor", "wsp"]);
const SIGNS: Record<string, string> = {
  "w:tab": "\t",
  "w:br": "\n",
  "w:cr": "\n",
  "w:noBreakHyphen": "-",
  "w:ptab": "\t",
};
const UNBLANK = /[^\s\x85\ufeff]/u; // what is a blank to Python or to a browser is one here
const HEADING = /^(heading [1-9]$|Heading|Title)/u;

const MAIN = "word/document.xml"; // some programs have it as document2.xml
const REFERENCES = new Set(["w:footnoteReference", "w:endnoteReference"]);

/** Makes a tree, or several that go on counting, as Word shows them. */
type Show = (root: XmlNode) => void;

export function parse(data: Uint8Array): Read {
  return { mimeType: DOCX, parts: partsOf(data) };
}

/** `isChunk`: the document stands in another one, so chunks in it are not read. */
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
  const story = (): Show => {
    const counting = numbering && new Counting(numbering);
    return (root) => {
      takeHidden(root, hidden);
      if (counting) writeOutNumbers(root, counting, hidden);
    };
  };
  story()(body);
  writeOutDrawn(body, new Drawn(archive), relations);
  const notes = notesOf(archive, relations, story);
  const aroundPages = story();
  const shown = (place: string) => around(archive, relations, body, place, aroundPages);
  const parts = shown("header");
  let section: string | undefined;
  for (const block of topmost(body, BLOCKS_AND_CHUNKS, GONE)) {
    if (block.name === CHUNK) {
      const found = isChunk ? [] : chunkOf(archive, relations, block);
      parts.push(...found.map((one) => part(one.text, { section: one.section ?? section })));
      continue;
    }
    const text = textOf(block);
    const style = find(block, "w:pPr", "w:pStyle")?.attributes.get("w:val");
    const said = text.slice(letters(find(block, NUMBER)).length).trim();
    if (headings.has(style) && said) section = text.trim();
    const below = [...topmost(block, REFERENCES, GONE)].map((mark) => taken(notes, keyOf(mark)));
    parts.push(part([text, ...below.filter(Boolean)].join("\n"), { section }));
  }
  return joined([...parts, ...shown("footer")]);
}

/** Return the text of a chunk: HTML, RTF, plain text or DOCX. */
function chunkOf(archive: Archive, relations: readonly Relation[], mark: XmlNode): Part[] {
  const relation = relations.find(({ id }) => id === mark.attributes.get("r:id"));
  if (!relation || !archive.has(relation.place)) return [];
  try {
    const data = archive.bytes(relation.place);
    const kind = sniff(data, relation.place);
    if (kind === DOCX) return partsOf(data, true);
    if (kind === HTML) return htmlParts(decode(data));
    if (kind === RTF) return parseRtf(data).parts;
    return kind === "text/plain" ? [part(decode(data))] : [];
  } catch (error) {
    if (isOutOfMemory(error) || (error instanceof Unreadable && !LOST.has(error.code))) throw error;
    return [];
  }
}

function headingsOf(styles: XmlNode): Set<string | undefined> {
  const isHeading = (style: XmlNode) => HEADING.test(find(style, "w:name")?.attributes.get("w:val") ?? "");
  return new Set(
    [...every(styles, "w:style")].filter(isHeading).map((style) => style.attributes.get("w:styleId")),
  );
}

/** Those that hide what is written in them, by themselves or because of the one that they are based on. */
function hiddenStyles(root: XmlNode): Set<string> {
  const named = elements(root).filter(({ name }) => name === "w:style");
  const styles = new Map(named.map((style) => [style.attributes.get("w:styleId") ?? "", style]));
  const hides = (style: XmlNode | undefined, seen = 0): boolean => {
    if (!style || seen > 20) return false;
    const own = isOn(find(style, "w:rPr"), "w:vanish");
    return own ?? hides(styles.get(find(style, "w:basedOn")?.attributes.get("w:val") ?? ""), seen + 1);
  };
  return new Set([...styles].filter(([, style]) => hides(style)).map(([name]) => name));
}

/** Out of a tree what Word does not show. */
function takeHidden(node: XmlNode, styles: ReadonlySet<string>, isParagraphHidden = false): void {
  const style = node.name === "w:p" ? find(node, "w:pPr", "w:pStyle")?.attributes.get("w:val") : undefined;
  const inHidden = node.name === "w:p" ? styles.has(style ?? "") : isParagraphHidden;
  const isHidden = (child: XmlNode) => {
    if (SHAPES.has(child.name)) return isShapeHidden(child);
    if (child.name === "w:tr") return isOn(find(child, "w:trPr"), "w:hidden") ?? false;
    if (child.name !== "w:r") return false;
    const look = find(child, "w:rPr");
    const named = styles.has(find(look, "w:rStyle")?.attributes.get("w:val") ?? "");
    return isOn(look, "w:vanish") ?? named !== inHidden; // hidden by both, it is shown again
  };
  node.children = node.children.filter((child) => typeof child === "string" || !isHidden(child));
  for (const child of elements(node)) takeHidden(child, styles, inHidden);
}

function isShapeHidden(shape: XmlNode): boolean {
  const about = find(shape, "docPr") ?? find(shape, "cNvPr");
  return ["1", "true"].includes(about?.attributes.get("hidden") ?? "");
}

/** None if the document has none that can be read. */
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

/** Into each paragraph the number that Word shows before it. One without words whose end is gone is no paragraph. */
function writeOutNumbers(root: XmlNode, counting: Counting, hidden: ReadonlySet<string>): void {
  for (const [paragraph, isBoxed] of paragraphs(root)) {
    const isSaid = [...topmost(paragraph, LETTERS, OUTSIDE)].some((node) => UNBLANK.test(letters(node)));
    const number = isSaid || !isEndGone(paragraph, hidden) ? counting.number(paragraph, isSaid, isBoxed) : "";
    if (number) paragraph.children.unshift(made(NUMBER, [number]));
  }
}

/** All, in order, those within others too, and whether they stand in a box of text. */
function* paragraphs(node: XmlNode, isBoxed = false): Generator<[XmlNode, boolean]> {
  for (const child of elements(node)) {
    if (child.name === "w:p") yield [child, isBoxed];
    if (!GONE.has(child.name)) yield* paragraphs(child, isBoxed || child.name === "w:txbxContent");
  }
}

/** Whether its mark was struck out, moved away or hidden. */
function isEndGone(paragraph: XmlNode, hidden: ReadonlySet<string>): boolean {
  const properties = find(paragraph, "w:pPr");
  const look = find(properties, "w:rPr");
  if (find(look, "w:del") || find(look, "w:moveFrom")) return true;
  return isOn(look, "w:vanish") ?? hidden.has(value(properties, "w:pStyle"));
}

/** What a chart or a diagram says, as a box of text where it stands. */
function writeOutDrawn(node: XmlNode, drawn: Drawn, relations: readonly Relation[]): void {
  for (const graphic of [...every(node, "a:graphicData")]) {
    const lines = drawn.lines(graphic, relations);
    const paragraphs = lines.map((line) => made("w:p", [made("w:t", [line])]));
    if (lines.length > 0) graphic.children.push(made("w:txbxContent", paragraphs));
  }
}

function made(name: string, children: XmlNode["children"]): XmlNode {
  return { name, attributes: new Map(), children };
}

/** What stands above or below the pages, each once. A number alone is that of the page. */
function around(
  archive: Archive,
  related: readonly Relation[],
  body: XmlNode,
  place: string,
  show: Show,
): Part[] {
  const relations = related.filter((relation) => archive.has(relation.place));
  const settings = archive.optionalXml(byType(relations, "settings"));
  const oddAndEven = settings && isOn(settings, "w:evenAndOddHeaders");
  const found = new Set<string>();
  const read = new Set<string>();
  for (const section of every(body, "w:sectPr")) {
    const shown: Record<string, unknown> = {
      default: true,
      first: isOn(section, "w:titlePg"),
      even: oddAndEven,
    };
    for (const { name, attributes } of elements(section)) {
      const relation = relations.find(({ id }) => id === attributes.get("r:id"));
      if (name !== `w:${place}Reference` || !relation || !shown[attributes.get("w:type") ?? "default"])
        continue;
      if (read.has(relation.place)) continue;
      read.add(relation.place);
      const root = archive.optionalXml([relation.place]);
      if (!root) continue;
      show(root);
      const said = blocksOf(root).trim();
      if (/\p{L}/u.test(said)) found.add(said);
    }
  }
  return [...found].map((said) => part(said));
}

/** Return the text of each note by what refers to it. Notes that are damaged are left out. */
function notesOf(archive: Archive, relations: readonly Relation[], story: () => Show): Map<string, string> {
  const found = new Map<string, string>();
  for (const place of [...byType(relations, "footnotes"), ...byType(relations, "endnotes")]) {
    const root = archive.optionalXml([place]);
    if (!root) continue;
    story()(root);
    for (const note of elements(root)) found.set(keyOf(note), blocksOf(note).trim());
  }
  return found;
}

function blocksOf(node: XmlNode): string {
  return [...topmost(node, BLOCKS, GONE)].map(textOf).join("\n");
}

/** Each once, however often it is named. */
function taken(notes: Map<string, string>, key: string): string {
  const said = notes.get(key) ?? "";
  notes.delete(key);
  return said;
}

/** The same of a note and of what refers to it. */
function keyOf({ name, attributes }: XmlNode): string {
  return `${name.replace("Reference", "")} ${attributes.get("w:id")}`;
}

/** A table is a line a row; a table within a cell is part of that line. */
function textOf(block: XmlNode): string {
  if (block.name === "w:p") return wordsOf(block);
  const rows = [...topmost(block, ROW, GONE)];
  return rows.map((row) => [...topmost(row, CELL, GONE)].map(cellOf).join("\t")).join("\n");
}

function cellOf(cell: XmlNode): string {
  const text = [...topmost(cell, BLOCKS, GONE)].map(textOf).join(" ");
  return text.trim().replace(/\s+/gu, " ");
}

function wordsOf(node: XmlNode): string {
  return elements(node)
    .filter(({ name }) => !GONE.has(name))
    .map((child) => {
      if (LETTERS.has(child.name) || child.name === NUMBER) return letters(child);
      if (child.name === "w:txbxContent") return `\n${blocksOf(child)}\n`;
      return (SIGNS[child.name] ?? "") + wordsOf(child);
    })
    .join("");
}
