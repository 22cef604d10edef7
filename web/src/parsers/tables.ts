/**
 * Split tables into parts and repeat the column names above each part, so that a passage explains its numbers. The
 * rules are those of server/vademecum/engines/files/tables.py.
 */

import { BUDGET, points } from "../core/documents/chunking.ts";
import { NAME, SYMBOLS } from "./formats/ooxml/currencies.ts";
import { part, type Part } from "./result.ts";

/** Maximum size of the row with the column names, in points. Longer names would leave too little space for rows. */
const NAMES_MAX = Math.floor(BUDGET / 3);
/** Number of rows that are searched for column names. There may be a title above the names. */
const HEADER_ROWS = 10;
/** Number of rows below the column names that are checked for numbers. */
const SAMPLE_ROWS = 20;
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
 * Split a table into parts that fit one chunk each, and repeat its column names. Return `whole` unchanged if it fits
 * one chunk or has no column names. `rows` are the rows of `whole`. One of `separators` separates their cells.
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

/** Yield groups of at least one row. The first group fits `firstSize` points, all others fit `otherSize` points. */
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

/**
 * Return the index of the row with the column names, or undefined. Such a row has several names and no number, and a
 * column below it has numbers.
 */
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

/**
 * Return whether cells are column names: at least two are filled, none is a number, and at most one is empty. An empty
 * cell can be above the names of rows.
 */
function areNames(cells: readonly string[]): boolean {
  const filled = cells.filter(Boolean);
  return filled.length > 1 && cells.length - filled.length <= 1 && !filled.some((name) => NUMBER.test(name));
}

function mostFrequent(separators: string, text: string): string {
  const count = (separator: string) => text.split(separator).length;
  return [...separators].reduce((best, separator) => (count(separator) > count(best) ? separator : best));
}

/**
 * Return whether at least three quarters of the cells in some column are numbers. A row may have fewer cells than there
 * are columns, because a workbook does not store empty cells at the end of a row.
 */
function hasNumericColumn(rows: readonly string[][], columns: number): boolean {
  if (rows.length < 2) return false;
  const count = (column: number) => rows.filter((row) => NUMBER.test(row[column] ?? "")).length;
  return Array.from({ length: columns }, (_, column) => count(column)).some(
    (numbers) => numbers * 4 >= 3 * rows.length,
  );
}

/** Return the cells of a row, or no cells if the row has more than `max` points. */
function cells({ text }: Row, separator: string, max: number): string[] {
  if (points(text) > max) return [];
  return [...joinQuoted(text.split(separator), separator)].map((cell) => cell.replace(EDGES, ""));
}

/** Join pieces that were split at a `separator` within quotation marks. Yield all pieces in order. */
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
