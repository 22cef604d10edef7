/** Show a document's text page by page, with a marked passage. */

import { chunk } from "../../../../web/src/core/documents/chunking.ts";
import {
  piecesAround,
  markPiece,
  pageNumbers,
  mergePieces,
  type Piece,
} from "../../../../web/src/core/documents/documentPages.ts";

const SENTENCE = "The tenant gives notice three months before the end. ";
const paged = chunk([
  { text: SENTENCE.repeat(40), page: 1 },
  { text: "A short page.", page: 2 },
  { text: SENTENCE.repeat(30), page: 4 },
]);
const plain = chunk([{ text: Array.from({ length: 60 }, () => SENTENCE.repeat(12)).join("\n\n") }]);
const wall = chunk([{ text: SENTENCE.repeat(4_000) }]);

function textOf({ before, passage, after }: ReturnType<typeof markPiece>): string {
  return before + passage + after;
}

test("each page begins once, and every piece is kept", () => {
  const found = mergePieces(paged);
  expect(found.map(({ begins }) => begins)).toEqual([1, 2, 4]);
  expect(found.flatMap(({ pieces }) => pieces)).toEqual(paged);
  expect(pageNumbers(paged)).toEqual([1, 2, 4]);
});

test("a text without pages is split at paragraphs", () => {
  const found = mergePieces(plain);
  expect(found.length).toBeGreaterThan(1);
  expect(found.flatMap(({ pieces }) => pieces)).toEqual(plain);
  expect(found.every(({ begins }) => begins === undefined)).toBe(true);
  for (const { pieces } of found.slice(1)) {
    const before = plain[pieces[0]!.index - 1]!;
    expect(pieces[0]!.start - before.start - before.text.length).toBeGreaterThan(1);
  }
});

test("a text without pages or paragraphs is split into pieces", () => {
  const found = mergePieces(wall);
  expect(Math.max(...found.map(({ pieces }) => pieces.length))).toBeLessThanOrEqual(64);
  expect(found.flatMap(({ pieces }) => pieces)).toEqual(wall);
});

test("a page split into parts shows its number only once", () => {
  const page = wall.map((piece) => ({ ...piece, page: 7 }));
  expect(mergePieces(page).map(({ begins }) => begins)).toEqual([
    7,
    ...Array.from({ length: mergePieces(page).length - 1 }, () => undefined),
  ]);
});

test("the passage is marked at its position", () => {
  const page = paged.filter((piece) => piece.page === 1);
  const whole = textOf(markPiece(page, null));
  for (const { index, text } of page) {
    const found = markPiece(page, index);
    expect(found.passage).toBe(text);
    expect(textOf(found)).toBe(whole);
  }
  expect(markPiece(page, 999)).toEqual({ before: whole, passage: "", after: "" });
});

test("a passage is shown with its page or, without pages, its neighbors", () => {
  expect(piecesAround(paged, 0).every(({ page }) => page === 1)).toBe(true);
  const indexes = (pieces: Piece[]) => pieces.map(({ index }) => index);
  expect(indexes(piecesAround(plain, 10))).toEqual([8, 9, 10, 11, 12]);
  expect(indexes(piecesAround(plain, 0))).toEqual([0, 1, 2]);
  expect(piecesAround(plain, 9_999)).toEqual([]);
});
