/** XLSX: a sheet is a section, a row a line, a value as it was last calculated. */

import { Archive } from "./archive.ts";
import { dateFormats, spelledDate, type DateKind } from "./dates.ts";
import { LIMITS, part, Unreadable, XLSX, type Part, type Read } from "./parsed.ts";
import { byId, byType, relationsOf } from "./relations.ts";
import { table, type Row } from "./table.ts";
import { elements, find, letters, parseXml, type XmlNode } from "./xml.ts";

const MAIN = "xl/workbook.xml";
const ROWS_MAX = 1_048_576; // Excel has no more
const BLANK = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/u; // Python's

/** What the cells of all sheets refer to. */
interface Book {
  strings: string[];
  dates: (DateKind | undefined)[]; // by the number of the style
  since1904: boolean;
}

export function parse(data: Uint8Array): Read {
  const archive = new Archive(data);
  const main = archive.xml(MAIN);
  const relations = relationsOf(archive, MAIN);
  const worksheets = new Set(byType(relations, "worksheet"));
  const book = bookOf(archive, main);
  const sheets = find(main, "x:sheets");
  const parts: Part[] = [];
  let cells = 0;
  for (const { attributes } of sheets ? elements(sheets) : []) {
    const place = byId(relations, attributes.get("r:id"));
    if (!worksheets.has(place)) continue; // a sheet that is a diagram
    const rows: Row[] = [];
    let number = 0;
    let last = 0;
    parseXml(archive.bytes(place), "x:row", (row) => {
      const values = valuesOf(row, book);
      number = numberOf(row, number + 1);
      if (number <= last) return; // a row that was there: the server passes over it
      last = number;
      cells += values.length && values.length + 1;
      if (cells > LIMITS.cells) throw new Unreadable("TOO_EXPANSIVE");
      const text = trimmed(values.join("\t"));
      if (text) rows.push({ number, text });
    });
    const whole = part(rows.map(({ text }) => text).join("\n"), { section: attributes.get("name") });
    parts.push(...table(whole, rows, "\t"));
  }
  return { mimeType: XLSX, parts };
}

function bookOf(archive: Archive, main: XmlNode): Book {
  const shared = archive.has("xl/sharedStrings.xml") ? archive.xml("xl/sharedStrings.xml") : undefined;
  const styles = archive.has("xl/styles.xml") ? archive.xml("xl/styles.xml") : undefined;
  const since1904 = find(main, "x:workbookPr")?.attributes.get("date1904") ?? "0";
  return {
    strings: shared ? elements(shared).map(stringOf) : [],
    dates: styles ? dateFormats(styles) : [],
    since1904: since1904 === "1" || since1904 === "true",
  };
}

/** Plain, or in runs of different looks; not how it is pronounced. */
function stringOf(node: XmlNode): string {
  return elements(node)
    .map((child) =>
      letters(child.name === "x:t" ? child : child.name === "x:r" ? find(child, "x:t") : undefined),
    )
    .join("");
}

function numberOf(row: XmlNode, otherwise: number): number {
  const number = Number(row.attributes.get("r") ?? otherwise);
  if (!Number.isInteger(number) || number > ROWS_MAX) throw new Unreadable("DAMAGED");
  return number;
}

/** Without the blanks at its end. */
function trimmed(line: string): string {
  let end = line.length;
  while (end && BLANK.test(line[end - 1]!)) end--;
  return line.slice(0, end);
}

function valuesOf(row: XmlNode, book: Book): string[] {
  const values: string[] = [];
  for (const cell of elements(row)) {
    const at = columnOf(cell.attributes.get("r")) ?? values.length;
    if (at >= 16_384) throw new Unreadable("DAMAGED"); // more columns than Excel has
    while (values.length < at) values.push("");
    values[at] = valueOf(cell, book);
  }
  return values;
}

/** Of "AB12", counted from 0. */
function columnOf(reference: string | undefined): number | undefined {
  const column = /^[A-Za-z]+/u.exec(reference ?? "")?.[0].toUpperCase();
  if (column === undefined) return undefined;
  return [...column].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

function valueOf(cell: XmlNode, { strings, dates, since1904 }: Book): string {
  const type = cell.attributes.get("t") ?? "n";
  if (type === "inlineStr") return stringOf(find(cell, "x:is") ?? cell);
  const value = letters(find(cell, "x:v"));
  if (!value) return "";
  if (type === "s") return strings[Number(value)] ?? "";
  if (type === "b") return value === "0" ? "False" : "True";
  if (type === "d") return value.replace("T", " ").replace(/Z$/u, "");
  if (type !== "n") return value;
  const kind = dates[Number(cell.attributes.get("s") ?? 0)];
  return kind ? spelledDate(Number(value), kind, since1904) : spelledNumber(value);
}

/** As the server says it: a fraction keeps its point. */
function spelledNumber(value: string): string {
  if (!/[.eE]/u.test(value)) return value;
  const number = String(Number(value));
  return /^-?\d+$/u.test(number) ? `${number}.0` : number;
}
