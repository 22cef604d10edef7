/**
 * XLSX: a sheet is a section, a row a line, a value as it was last calculated. A sheet that is hidden is not read; rows
 * and columns are. A cell that says what cannot be is left as it is written.
 */

import { Archive } from "./zip_container.ts";
import { spelledTime, type Look } from "./date_formats.ts";
import { looks, spelled, stored } from "./number_formats.ts";
import { LIMITS, part, Unreadable, XLSX, type Part, type Read } from "../../result.ts";
import { byType, mainOf, relationsOf, type Relation } from "./package.ts";
import { table, type Row } from "../../tables.ts";
import { elements, find, letters, parseXml, type XmlNode } from "../../markup/xml.ts";

const MAIN = "xl/workbook.xml";
const ROWS_MAX = 1_048_576; // Excel has no more
const ESCAPED = /_x(?!D[89A-F])([0-9A-F]{4})_/giu; // what XML cannot hold; half a letter stays so
const PLACE = /^([A-Za-z]{1,3})\d+$/u;
const INDEX = /^\d{1,9}$/u;
const WHOLE = /^[ \t\r\n]*[+-]?\d+[ \t\r\n]*$/u;
const NUMBER = /^[ \t\r\n]*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?[ \t\r\n]*$/iu;
const BLANK = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/u; // Python's

/** What the cells of all sheets refer to. */
interface Book {
  strings: string[] | undefined; // there is no list of them
  looks: Look[]; // by the number of the style
}

export function parse(data: Uint8Array): Read {
  const archive = new Archive(data);
  const place = mainOf(archive, MAIN);
  const main = archive.xml(place);
  const related = relationsOf(archive, place);
  const book = bookOf(archive, main, related);
  const sheets = find(main, "x:sheets");
  const parts: Part[] = [];
  let cells = 0;
  for (const { attributes } of sheets ? elements(sheets) : []) {
    const relation = related.find(({ id }) => id === attributes.get("r:id"));
    if (relation && !relation.type.endsWith("/worksheet")) continue; // a sheet that is a diagram
    if ((attributes.get("state") ?? "visible") !== "visible") continue;
    const place = there(relation?.place);
    const rows: Row[] = [];
    let number = 0;
    let last = 0;
    parseXml(archive.bytes(place), "x:row", (row) => {
      const values = valuesOf(row, book);
      number = numberOf(row, number + 1);
      if (number <= last) return; // not below the one before it: the server passes over it
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

function bookOf(archive: Archive, main: XmlNode, related: readonly Relation[]): Book {
  const [strings, styles] = ["sharedStrings", "styles"].map((type) => {
    const place = byType(related, type).at(-1);
    return place !== undefined && archive.has(place) ? place : undefined;
  });
  const since1904 = find(main, "x:workbookPr")?.attributes.get("date1904") ?? "0";
  return {
    strings: strings === undefined ? undefined : elements(archive.xml(strings)).map(stringOf),
    looks: styles ? looks(archive.xml(styles), since1904 === "1" || since1904 === "true") : [],
  };
}

/** Refuses: with what is missing words would be, and nobody would be told. */
function there<Thing>(thing: Thing | undefined): Thing {
  if (thing === undefined) throw new Unreadable("DAMAGED");
  return thing;
}

/** Plain, or in runs of different looks; not how it is pronounced. */
function stringOf(node: XmlNode): string {
  const runs = elements(node).map((child) =>
    letters(child.name === "x:t" ? child : child.name === "x:r" ? find(child, "x:t") : undefined),
  );
  return runs.join("").replace(ESCAPED, (_, code: string) => {
    const letter = String.fromCharCode(Number.parseInt(code, 16));
    return letter >= " " || "\t\n\r".includes(letter) ? letter : "";
  });
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
    while (values.length < at) values.push("");
    values[at] = valueOf(cell, book);
  }
  return values;
}

/** Of "AB12", counted from 0. */
function columnOf(reference: string | undefined): number | undefined {
  const column = PLACE.exec(reference ?? "")?.[1]!.toUpperCase();
  if (column === undefined) return undefined;
  return [...column].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

function valueOf(cell: XmlNode, book: Book): string {
  const type = cell.attributes.get("t") ?? "n";
  if (type === "inlineStr") return elements(cell).filter(isInline).map(stringOf).join("");
  const value = letters(find(cell, "x:v"));
  if (type === "s") return at(there(book.strings), value) ?? "";
  if (type === "b") return WHOLE.test(value) ? (Number(value) ? "True" : "False") : value;
  if (type === "d") return spelledTime(value);
  if (type !== "n" || !NUMBER.test(value) || !Number.isFinite(Number(value))) return value;
  const look = at(book.looks, cell.attributes.get("s") ?? "0") ?? stored;
  return look(Number(value), spelled(value));
}

function isInline({ name }: XmlNode): boolean {
  return name === "x:is";
}

function at<Thing>(things: readonly Thing[], written: string): Thing | undefined {
  return INDEX.test(written) ? things[Number(written)] : undefined;
}
