/**
 * Split tables into parts and repeat the column names above each, so that a passage explains its numbers. The rules are
 * those of server/vademecum/engines/files/tables.py.
 */

import { BUDGET, points } from "../core/documents/chunking.ts";
import { NAME, SYMBOLS } from "./formats/ooxml/currencies.ts";
import { part, type Part } from "./result.ts";

const NAMES_MAX = Math.floor(BUDGET / 3); // points; longer names would leave too little room for rows
const HEADER_ROWS = 10; // rows that are searched for column names; a title may be above them
const SAMPLE_ROWS = 20; // rows below the names that are checked for numbers
const NUMBER = new RegExp(
  String.raw`^[(+~\-]?(?:[A-Z]{0,3}[${SYMBOLS}] ?|(?:${NAME}) )?[0-9][0-9.,:/%${SYMBOLS} )\xa0'\-]*(?:${NAME})?$`,
  "u",
);
const EDGES = /^[ \t\xa0"']+|(?<![ \t\xa0"'])[ \t\xa0"']+$/gu;

/** A table row. `number` counts from 1, as in spreadsheets. A cell may contain line ends. */
export interface Row {
  number: number;
  text: string;
}

/**
 * Split a table with column names into parts of one chunk each. Return `whole` if it fits a chunk or has no names. `rows`:
 * the rows of `whole`, whose cells are separated by one of `separators`.
 */
export function splitTable(whole: Part, rows: Iterable<Row>, separators: string): Part[] {
  if (points(whole.text) <= BUDGET) return [whole];
  const rest = rows[Symbol.iterator]();
  const top: Row[] = [];
  for (let next; top.length < HEADER_ROWS + SAMPLE_ROWS && !(next = rest.next()).done;) top.push(next.value);
  const nameRow = nameRowIndex(top, separators);
  if (nameRow === undefined) return [whole];
  const names = top[nameRow]!.text;
  const parts: Part[] = [];
  let header = textOf(top.slice(0, nameRow + 1));
  const sizes = [BUDGET - points(header), BUDGET - points(names)] as const;
  for (const group of groupRows(chain(top.slice(nameRow + 1), rest), ...sizes)) {
    const first = (parts.length ? group[0]! : top[0]!).number;
    const last = group.at(-1)!.number;
    const section = whole.section ? `${whole.section}, rows ${first}-${last}` : `Rows ${first}-${last}`;
    parts.push(part(`${header}\n${textOf(group)}`, { page: whole.page, section }));
    header = names;
  }
  return parts;
}

function* chain(first: Iterable<Row>, rest: Iterator<Row>): Iterable<Row> {
  yield* first;
  for (let next; !(next = rest.next()).done;) yield next.value;
}

function textOf(rows: readonly Row[]): string {
  return rows.map(({ text }) => text).join("\n");
}

/** Yield groups of rows that fit the given sizes, in points, with at least one row each. */
function* groupRows(rows: Iterable<Row>, firstSize: number, otherSize: number): Iterable<Row[]> {
  let group: Row[] = [];
  let available = firstSize;
  for (const row of rows) {
    const needed = points(`\n${row.text}`);
    if (group.length && needed > available) {
      yield group;
      [group, available] = [[], otherSize];
    }
    group.push(row);
    available -= needed;
  }
  if (group.length) yield group;
}

/** Return the index of the row with the column names: several names without a number, and numbers below one of them. */
function nameRowIndex(rows: readonly Row[], separators: string): number | undefined {
  const separator = mostFrequent(separators, textOf(rows.slice(0, HEADER_ROWS)));
  const all = rows.map((row) => cells(row, separator, BUDGET));
  const index = rows.slice(0, HEADER_ROWS).findIndex((row) => areNames(cells(row, separator, NAMES_MAX)));
  if (index < 0) return undefined;
  const columns = all[index]!.length;
  const sample = all.slice(index + 1, index + 1 + SAMPLE_ROWS);
  const sameShape = sample.filter(({ length }) => length > 1 && length <= columns);
  return hasNumericColumn(sameShape, columns) ? index : undefined;
}

/** Return whether cells are column names: at least two, no number, and at most one empty, as above the row names. */
function areNames(cells: readonly string[]): boolean {
  const filled = cells.filter(Boolean);
  return filled.length > 1 && cells.length - filled.length <= 1 && !filled.some((name) => NUMBER.test(name));
}

function mostFrequent(separators: string, text: string): string {
  const count = (separator: string) => text.split(separator).length;
  return [...separators].reduce((best, separator) => (count(separator) > count(best) ? separator : best));
}

/** Return whether three of four cells of a column are numbers. A row of a workbook has no empty cells at its end. */
function hasNumericColumn(rows: readonly string[][], columns: number): boolean {
  if (rows.length < 2) return false;
  const count = (column: number) => rows.filter((row) => NUMBER.test(row[column] ?? "")).length;
  return Array.from({ length: columns }, (_, column) => count(column)).some(
    (numbers) => numbers * 4 >= 3 * rows.length,
  );
}

/** Return the cells of a row, or none if it has more than `max` points. */
function cells({ text }: Row, separator: string, max: number): string[] {
  if (points(text) > max) return [];
  return [...joinQuoted(text.split(separator), separator)].map((cell) => cell.replace(EDGES, ""));
}

/** Join pieces that were split within quotation marks. */
export function* joinQuoted(pieces: Iterable<string>, separator: string): Iterable<string> {
  let buffer: string[] = [];
  let isOpen = false;
  for (const piece of pieces) {
    buffer.push(piece);
    if (piece.split('"').length % 2 === 0) isOpen = !isOpen;
    if (isOpen) continue;
    yield buffer.join(separator);
    buffer = [];
  }
  if (buffer.length) yield buffer.join(separator);
}
