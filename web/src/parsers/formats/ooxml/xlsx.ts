/**
 * Parse XLSX. A sheet becomes a section, and a row becomes a line. For a formula, its last calculated value is used.
 * Hidden sheets are skipped, but hidden rows and columns are not. An invalid value is left unchanged.
 */

import { Archive } from "./zip_container.ts";
import { formatIsoDateTime, type Formatter } from "./date_formats.ts";
import { numberFormatters, plainNumber, unformatted } from "./number_formats.ts";
import { LIMITS, part, Unreadable, XLSX, type Parsed, type Part } from "../../result.ts";
import { byType, mainOf, relationsOf, type Relation } from "./package.ts";
import { splitTable, type Row } from "../../tables.ts";
import { elements, find, ownText, parseXml, type XmlNode } from "../../markup/xml.ts";

const MAIN = "xl/workbook.xml";
/** Maximum number of rows in a sheet of Excel. */
const ROWS_MAX = 1_048_576;
/** Pattern of Excel's escape for a character that XML does not allow. Surrogates do not match. */
const ESCAPE = /_x(?!D[89A-F])([0-9A-F]{4})_/giu;
const CELL_REFERENCE = /^([A-Za-z]{1,3})\d+$/u;
const INDEX = /^\d{1,9}$/u;
const WHOLE = /^[ \t\r\n]*[+-]?\d+[ \t\r\n]*$/u;
const NUMBER = /^[ \t\r\n]*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?[ \t\r\n]*$/iu;
/** Characters that Python treats as whitespace, so that lines end like the server's. */
const BLANK = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/u;

/** The tables of a workbook to which the cells of all sheets refer. */
interface Book {
  strings: string[] | undefined;
  formatters: Formatter[]; // the index is the number of the cell style
}

export function parse(data: Uint8Array): Parsed {
  const archive = new Archive(data);
  const mainName = mainOf(archive, MAIN);
  const main = archive.xml(mainName);
  const relations = relationsOf(archive, mainName);
  const book = bookOf(archive, main, relations);
  const sheets = find(main, "x:sheets");
  const parts: Part[] = [];
  let cells = 0;
  for (const { attributes } of sheets ? elements(sheets) : []) {
    const relation = relations.find(({ id }) => id === attributes.get("r:id"));
    if (relation && !relation.type.endsWith("/worksheet")) continue; // skip, for example, a chart sheet
    if ((attributes.get("state") ?? "visible") !== "visible") continue;
    const sheetName = required(relation?.target);
    const rows: Row[] = [];
    let number = 0;
    let last = 0;
    parseXml(archive.bytes(sheetName), "x:row", (row) => {
      const values = valuesOf(row, book);
      number = numberOf(row, number + 1);
      if (number <= last) return; // skip a row that is out of order, as the server does
      last = number;
      cells += values.length && values.length + 1;
      if (cells > LIMITS.cells) throw new Unreadable("TOO_EXPANSIVE");
      const text = trimEnd(values.join("\t"));
      if (text) rows.push({ number, text });
    });
    const whole = part(rows.map(({ text }) => text).join("\n"), { section: attributes.get("name") });
    parts.push(...splitTable(whole, rows, "\t"));
  }
  return { mimeType: XLSX, parts };
}

function bookOf(archive: Archive, main: XmlNode, relations: readonly Relation[]): Book {
  const [strings, styles] = ["sharedStrings", "styles"].map((type) => {
    const target = byType(relations, type).at(-1);
    return target !== undefined && archive.has(target) ? target : undefined;
  });
  const since1904 = find(main, "x:workbookPr")?.attributes.get("date1904") ?? "0";
  return {
    strings: strings === undefined ? undefined : elements(archive.xml(strings)).map(stringOf),
    formatters: styles
      ? numberFormatters(archive.xml(styles), since1904 === "1" || since1904 === "true")
      : [],
  };
}

/**
 * Return the value. Throw Unreadable if it is undefined, because a part of the workbook is missing and its text must
 * not be left out without notice.
 */
function required<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Unreadable("DAMAGED");
  return value;
}

/** Return the text of a string, which may be split into runs with different formats. Phonetic text is left out. */
function stringOf(node: XmlNode): string {
  const runs = elements(node).map((child) =>
    ownText(child.name === "x:t" ? child : child.name === "x:r" ? find(child, "x:t") : undefined),
  );
  return runs.join("").replace(ESCAPE, (_, code: string) => {
    const character = String.fromCharCode(Number.parseInt(code, 16));
    return character >= " " || "\t\n\r".includes(character) ? character : "";
  });
}

function numberOf(row: XmlNode, defaultNumber: number): number {
  const number = Number(row.attributes.get("r") ?? defaultNumber);
  if (!Number.isInteger(number) || number > ROWS_MAX) throw new Unreadable("DAMAGED");
  return number;
}

function trimEnd(line: string): string {
  let end = line.length;
  while (end && BLANK.test(line[end - 1]!)) end--;
  return line.slice(0, end);
}

function valuesOf(row: XmlNode, book: Book): string[] {
  const values: string[] = [];
  for (const cell of elements(row)) {
    const column = columnOf(cell.attributes.get("r")) ?? values.length;
    while (values.length < column) values.push("");
    values[column] = valueOf(cell, book);
  }
  return values;
}

/** Return the column of a cell reference such as "AB12", counted from 0, or undefined for an invalid reference. */
function columnOf(reference: string | undefined): number | undefined {
  const column = CELL_REFERENCE.exec(reference ?? "")?.[1]!.toUpperCase();
  if (column === undefined) return undefined;
  return [...column].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

function valueOf(cell: XmlNode, book: Book): string {
  const type = cell.attributes.get("t") ?? "n";
  if (type === "inlineStr") return elements(cell).filter(isInline).map(stringOf).join("");
  const value = ownText(find(cell, "x:v"));
  if (type === "s") return atIndex(required(book.strings), value) ?? "";
  if (type === "b") return WHOLE.test(value) ? (Number(value) ? "True" : "False") : value;
  if (type === "d") return formatIsoDateTime(value);
  if (type !== "n" || !NUMBER.test(value) || !Number.isFinite(Number(value))) return value;
  const format = atIndex(book.formatters, cell.attributes.get("s") ?? "0") ?? unformatted;
  return format(Number(value), plainNumber(value));
}

function isInline({ name }: XmlNode): boolean {
  return name === "x:is";
}

function atIndex<Value>(values: readonly Value[], index: string): Value | undefined {
  return INDEX.test(index) ? values[Number(index)] : undefined;
}
