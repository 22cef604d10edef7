/** A document's text as it is read: page by page, out of its chunks. */

import { join, type Chunk } from "./chunking.ts";

export type Piece = Pick<Chunk, "index" | "start" | "text" | "page">;

/** Chunks that are drawn together. A long text without pages comes in stretches, so that not all of it is laid out. */
export interface Stretch {
  /** What tells it from the others of its document. */
  key: number;
  /** The page that begins here; a stretch that goes on with a page, or has none, begins nothing. */
  begins?: number;
  pieces: Piece[];
}

/** Text with one passage in it. */
export interface MarkedText {
  before: string;
  passage: string;
  after: string;
}

const STRETCH = 16; // pieces from which on a stretch ends where a paragraph does
const LONGEST = 64; // and where it ends in any case

export function mergePieces(pieces: readonly Piece[]): Stretch[] {
  const found: Stretch[] = [];
  let last: Piece | undefined;
  for (const piece of pieces) {
    const stretch = found.at(-1);
    if (!stretch || !last || endsAfter(stretch, last, piece)) {
      const begins = piece.page !== undefined && piece.page !== last?.page ? { begins: piece.page } : {};
      found.push({ key: piece.index, ...begins, pieces: [piece] });
    } else stretch.pieces.push(piece);
    last = piece;
  }
  return found;
}

function endsAfter({ pieces }: Stretch, last: Piece, next: Piece): boolean {
  if (last.page !== next.page || pieces.length >= LONGEST) return true;
  const paragraphEnds = next.start - (last.start + last.text.length) > 1;
  return paragraphEnds && pieces.length >= STRETCH;
}

/** The text of the pieces around the one with this index; no passage if it is not among them. */
export function markPiece(pieces: readonly Piece[], index: number | null): MarkedText {
  const at = pieces.findIndex((piece) => piece.index === index);
  if (at < 0) return { before: join(pieces), passage: "", after: "" };
  const until = join(pieces.slice(0, at + 1));
  const passage = pieces[at]!.text;
  return {
    before: until.slice(0, until.length - passage.length),
    passage,
    after: join(pieces.slice(at)).slice(passage.length),
  };
}

/** The pieces of the passage's page, or, where there are no pages, those around it. */
export function piecesAround(pieces: readonly Piece[], index: number, reach = 2): Piece[] {
  const at = pieces.findIndex((piece) => piece.index === index);
  if (at < 0) return [];
  const { page } = pieces[at]!;
  if (page === undefined) return pieces.slice(Math.max(0, at - reach), at + reach + 1);
  return pieces.filter((piece) => piece.page === page);
}

/** The pages that have text, in order. */
export function pageNumbers(pieces: readonly Piece[]): number[] {
  return [...new Set(pieces.flatMap(({ page }) => page ?? []))];
}
