/**
 * Tables: the names of the columns stand above each stretch of rows, so that a passage says what its numbers are. The
 * rules are those of server/vademecum/engines/files/tables.py.
 */

import { BUDGET, points } from "../core/documents/chunking.ts";
import { NAME, SYMBOLS } from "./formats/ooxml/currencies.ts";
import { part, type Part } from "./result.ts";

const NAMES_MAX = Math.floor(BUDGET / 3); // points; longer ones would leave too little room for rows
const LOOKED_AT = 10; // rows in which the names of the columns may stand; a title may be above them
const SAMPLE = 20;
const NUMBER = new RegExp(
  String.raw`^[(+~\-]?(?:[A-Z]{0,3}[${SYMBOLS}] ?|(?:${NAME}) )?[0-9][0-9.,:/%${SYMBOLS} )\xa0'\-]*(?:${NAME})?$`,
  "u",
);
const EDGES = /^[ \t\xa0"']+|(?<![ \t\xa0"'])[ \t\xa0"']+$/gu;

/** `number` counts from 1, as spreadsheets do. A cell may hold a line end. */
export interface Row {
  number: number;
  text: string;
}

/**
 * `whole`, or, if that is more than one chunk and names its columns, stretches of a chunk each. `rows`: its own, with one of
 * the separators between the cells.
 */
export function table(whole: Part, rows: Iterable<Row>, separators: string): Part[] {
  if (points(whole.text) <= BUDGET) return [whole];
  const coming = rows[Symbol.iterator]();
  const top: Row[] = [];
  for (let next; top.length < LOOKED_AT + SAMPLE && !(next = coming.next()).done;) top.push(next.value);
  const at = namesAmong(top, separators);
  if (at === undefined) return [whole];
  const names = top[at]!.text;
  const parts: Part[] = [];
  let above = textOf(top.slice(0, at + 1));
  const rooms = [BUDGET - points(above), BUDGET - points(names)] as const;
  for (const stretch of stretches(chained(top.slice(at + 1), coming), ...rooms)) {
    const first = (parts.length ? stretch[0]! : top[0]!).number;
    const last = stretch.at(-1)!.number;
    const section = whole.section ? `${whole.section}, rows ${first}-${last}` : `Rows ${first}-${last}`;
    parts.push(part(`${above}\n${textOf(stretch)}`, { page: whole.page, section }));
    above = names;
  }
  return parts;
}

function* chained(first: Iterable<Row>, rest: Iterator<Row>): Iterable<Row> {
  yield* first;
  for (let next; !(next = rest.next()).done;) yield next.value;
}

function textOf(rows: readonly Row[]): string {
  return rows.map(({ text }) => text).join("\n");
}

/** As many rows as fit into the first room, then into such as the second, and one at least. */
function* stretches(rows: Iterable<Row>, first: number, others: number): Iterable<Row[]> {
  let stretch: Row[] = [];
  let left = first;
  for (const row of rows) {
    const needed = points(`\n${row.text}`);
    if (stretch.length && needed > left) {
      yield stretch;
      [stretch, left] = [[], others];
    }
    stretch.push(row);
    left -= needed;
  }
  if (stretch.length) yield stretch;
}

/** Which row names the columns: several names, none a number, and numbers below one of them. */
function namesAmong(rows: readonly Row[], separators: string): number | undefined {
  const separator = mostUsed(separators, textOf(rows.slice(0, LOOKED_AT)));
  const all = rows.map((row) => cells(row, separator, BUDGET));
  const at = rows.slice(0, LOOKED_AT).findIndex((row) => areNames(cells(row, separator, NAMES_MAX)));
  if (at < 0) return undefined;
  const columns = all[at]!.length;
  const alike = all.slice(at + 1, at + 1 + SAMPLE).filter(({ length }) => length > 1 && length <= columns);
  return hasNumbers(alike, columns) ? at : undefined;
}

/** Several, and none a number. One may be missing, as above what the rows are called. */
function areNames(cells: readonly string[]): boolean {
  const said = cells.filter(Boolean);
  return said.length > 1 && cells.length - said.length <= 1 && !said.some((name) => NUMBER.test(name));
}

function mostUsed(separators: string, text: string): string {
  const count = (separator: string) => text.split(separator).length;
  return [...separators].reduce((most, one) => (count(one) > count(most) ? one : most));
}

/** In three of four rows of a column. A row of a workbook has no empty cells at its end. */
function hasNumbers(rows: readonly string[][], columns: number): boolean {
  if (rows.length < 2) return false;
  const count = (column: number) => rows.filter((row) => NUMBER.test(row[column] ?? "")).length;
  return Array.from({ length: columns }, (_, column) => count(column)).some(
    (many) => many * 4 >= 3 * rows.length,
  );
}

/** None of a row that costs more than `most` points. */
function cells({ text }: Row, separator: string, most: number): string[] {
  if (points(text) > most) return [];
  return [...quoted(text.split(separator), separator)].map((cell) => cell.replace(EDGES, ""));
}

/** The pieces; one goes on while a quotation mark is open in it. */
export function* quoted(pieces: Iterable<string>, between: string): Iterable<string> {
  let held: string[] = [];
  let isOpen = false;
  for (const piece of pieces) {
    held.push(piece);
    if (piece.split('"').length % 2 === 0) isOpen = !isOpen;
    if (isOpen) continue;
    yield held.join(between);
    held = [];
  }
  if (held.length) yield held.join(between);
}
