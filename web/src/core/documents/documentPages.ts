/** Prepare the chunks of a document for reading, page by page. */

import { join, type Chunk } from "./chunking.ts";

export type Piece = Pick<Chunk, "index" | "start" | "text" | "page">;

/**
 * Chunks that are rendered together. A long text without pages is split into stretches, so that the browser lays out
 * only a part of it.
 */
export interface Stretch {
  /** Unique key of the stretch within its document. */
  key: number;
  /**
   * Number of the page that begins with this stretch. Undefined if the stretch continues a page, or if the document has
   * no pages.
   */
  begins?: number;
  pieces: Piece[];
}

/** A text, split around one passage. */
export interface MarkedText {
  before: string;
  passage: string;
  after: string;
}

const MIN_PIECES = 16; // number of pieces after which a stretch ends at the next paragraph end
const MAX_PIECES = 64; // maximum number of pieces in a stretch

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
  if (last.page !== next.page || pieces.length >= MAX_PIECES) return true;
  const paragraphEnds = next.start - (last.start + last.text.length) > 1;
  return paragraphEnds && pieces.length >= MIN_PIECES;
}

/** Split the text of the pieces around the piece with this index. If no piece has the index, the passage is empty. */
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

/**
 * Return the pieces of the page that contains the piece with this index. If the document has no pages, return the piece
 * and up to `reach` neighbors on each side.
 */
export function piecesAround(pieces: readonly Piece[], index: number, reach = 2): Piece[] {
  const at = pieces.findIndex((piece) => piece.index === index);
  if (at < 0) return [];
  const { page } = pieces[at]!;
  if (page === undefined) return pieces.slice(Math.max(0, at - reach), at + reach + 1);
  return pieces.filter((piece) => piece.page === page);
}

/** Return the numbers of the pages that have text, in order. */
export function pageNumbers(pieces: readonly Piece[]): number[] {
  return [...new Set(pieces.flatMap(({ page }) => page ?? []))];
}
