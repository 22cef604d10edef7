import type { Citation } from "../../core/chat/citation.ts";

/** Return the address of a cited passage: `/documents/<id>?passage=<block>/<chunk>`. */
export function passageLink({ documentId, block, chunkIndex }: Citation): string {
  const passage = block === undefined || chunkIndex === undefined ? "" : `?passage=${block}/${chunkIndex}`;
  return `/documents/${documentId}${passage}`;
}

/** Return the chunk index in the query of an address, or null if the query has no valid passage. */
export function passageIn(query: string): number | null {
  const match = /^\d+\/(\d+)$/u.exec(new URLSearchParams(query).get("passage") ?? "");
  return match ? Number(match[1]) : null;
}
