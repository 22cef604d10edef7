/** The address of a passage: its document, and in the query `passage=<block>/<chunk>`. */

import type { Citation } from "../../core/chat/citation.ts";

export function passageLink({ documentId, block, chunkIndex }: Citation): string {
  const passage = block === undefined || chunkIndex === undefined ? "" : `?passage=${block}/${chunkIndex}`;
  return `/documents/${documentId}${passage}`;
}

/** The chunk that a query names, by its index in the document; null if it names none. */
export function passageIn(query: string): number | null {
  const named = /^\d+\/(\d+)$/u.exec(new URLSearchParams(query).get("passage") ?? "");
  return named ? Number(named[1]) : null;
}
