/** Where an answer comes from. */

import type { EpisodeDoc } from "../schema/rows.ts";

export type Citation = EpisodeDoc["citations"][number];

/** In place of a model's name. The app shows such an answer as quotations. */
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
