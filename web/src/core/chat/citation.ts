/** Citations: the passages of documents that support an answer. */

import type { EpisodeDoc } from "../schema/rows.ts";

export type Citation = EpisodeDoc["citations"][number];

/** The `model` value of quotation answers. The app shows these answers as quotations. */
export const QUOTES = "quotes";

interface FoundPassage {
  documentId: string;
  filename: string;
  page: number | null;
  block: number;
  chunkIndex: number;
}

/** Return the citation of a passage with the number `n` in the answer. */
export function toCitation(found: FoundPassage, n: number): Citation {
  const { documentId, filename, page, block, chunkIndex } = found;
  return { n, documentId, filename, block, chunkIndex, ...(page === null ? {} : { page }) };
}
