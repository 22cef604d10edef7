/** OpenDocument text: headings become sections; a row of a table is a line. */

import { Archive } from "./archive.ts";
import { joined, ODT, part, Unreadable, type Part, type Read } from "./parsed.ts";
import { elements, every, topmost, type XmlNode } from "./xml.ts";

const LINES = new Set(["text:h", "text:p"]);
const BLOCKS = new Set([...LINES, "table:table-row"]);
const GONE = new Set(["text:tracked-changes", "office:annotation"]); // struck out; said about the text, not in it
const SIGNS: Record<string, string> = { "text:s": " ", "text:tab": "\t", "text:line-break": "\n" };

export function parse(data: Uint8Array): Read {
  const archive = new Archive(data);
  if (archive.mentions("META-INF/manifest.xml", "encryption-data")) throw new Unreadable("ENCRYPTED");
  const [body] = every(archive.xml("content.xml"), "office:text");
  const parts: Part[] = [];
  let section: string | undefined;
  for (const block of body ? topmost(body, BLOCKS, GONE) : []) {
    const text = LINES.has(block.name) ? wordsOf(block) : rowOf(block);
    if (block.name === "text:h" && text.trim()) section = text.trim();
    parts.push(part(text, { section }));
  }
  return { mimeType: ODT, parts: joined(parts) };
}

function rowOf(row: XmlNode): string {
  const cells = elements(row).map((cell) => [...topmost(cell, LINES, GONE)]);
  return cells.map((cell) => cell.map((line) => wordsOf(line).trim()).join(" ")).join("\t");
}

/** In the order in which they stand; a paragraph within (of a text box or a note) is a line of its own. */
function wordsOf(node: XmlNode): string {
  const inner = node.children.map((child) => {
    if (typeof child === "string") return child;
    return (LINES.has(child.name) ? "\n" : "") + (GONE.has(child.name) ? "" : wordsOf(child));
  });
  return (SIGNS[node.name] ?? "") + inner.join("");
}
