/** Citations: the passages of documents that support an answer. */

import type { EpisodeDoc } from "../schema/rows.ts";

export type Citation = EpisodeDoc["citations"][number];

/** The `model` value of quotation answers. The app shows these answers as quotations. */
export const QUOTES = "quotes";

export function toCitation(found: {
  documentId: string;
  filename: string;
  page: number | null;
  block: number;
  chunkIndex: number;
}): Citation {
  const { documentId, filename, page, block, chunkIndex } = found;
  return { documentId, filename, block, chunkIndex, ...(page === null ? {} : { page }) };
}
