/**
 * DOCX, as Word shows it: what was inserted is read and what was struck out is not; headings become sections. A note
 * stands below the paragraph or table that refers to it.
 */

import { Archive } from "./archive.ts";
import { DOCX, joined, part, Unreadable, type Part, type Read } from "./parsed.ts";
import { byType, relationsOf } from "./relations.ts";
import { elements, every, find, letters, topmost, type XmlNode } from "./xml.ts";

const BLOCKS = new Set(["w:p", "w:tbl"]);
const LETTERS = new Set(["w:t", "m:t"]); // those of a formula, too
const ROW = new Set(["w:tr"]);
const CELL = new Set(["w:tc"]);
/** Struck out, or moved away; properties (whose tabs are stops and not signs); a second copy for older programs. */
const GONE = new Set(["w:del", "w:moveFrom", "w:pPr", "w:rPr", "w:sectPr", "mc:Fallback"]);
const SIGNS: Record<string, string> = {
  "w:tab": "\t",
  "w:br": "\n",
  "w:cr": "\n",
  "w:noBreakHyphen": "-",
  "w:p": "\n", // of a text box, within the paragraph that holds it
};
const HEADING = /^(heading [1-9]$|Heading|Title)/u;

const MAIN = "word/document.xml";
const REFERENCES = new Set(["w:footnoteReference", "w:endnoteReference"]);

export function parse(data: Uint8Array): Read {
  const archive = new Archive(data);
  const body = find(archive.xml(MAIN), "w:body");
  if (!body) throw new Unreadable("DAMAGED");
  const headings = archive.has("word/styles.xml") ? headingsOf(archive.xml("word/styles.xml")) : new Set();
  const notes = notesOf(archive);
  const parts: Part[] = [];
  let section: string | undefined;
  for (const block of topmost(body, BLOCKS, GONE)) {
    const text = textOf(block);
    const style = find(block, "w:pPr", "w:pStyle")?.attributes.get("w:val");
    if (headings.has(style) && text.trim()) section = text.trim();
    const below = [...topmost(block, REFERENCES, GONE)].map((mark) => taken(notes, keyOf(mark)));
    parts.push(part([text, ...below.filter(Boolean)].join("\n"), { section }));
  }
  return { mimeType: DOCX, parts: joined(parts) };
}

function headingsOf(styles: XmlNode): Set<string | undefined> {
  const isHeading = (style: XmlNode) => HEADING.test(find(style, "w:name")?.attributes.get("w:val") ?? "");
  return new Set(
    [...every(styles, "w:style")].filter(isHeading).map((style) => style.attributes.get("w:styleId")),
  );
}

/** What each note says, by what refers to it. */
function notesOf(archive: Archive): Map<string, string> {
  const found = new Map<string, string>();
  const relations = relationsOf(archive, MAIN);
  for (const place of [...byType(relations, "footnotes"), ...byType(relations, "endnotes")]) {
    for (const note of elements(archive.xml(place)))
      found.set(keyOf(note), [...topmost(note, BLOCKS, GONE)].map(textOf).join("\n").trim());
  }
  return found;
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
    .map((child) => (LETTERS.has(child.name) ? letters(child) : (SIGNS[child.name] ?? "") + wordsOf(child)))
    .join("");
}
