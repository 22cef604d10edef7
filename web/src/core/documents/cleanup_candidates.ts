/**
 * Suggest documents to delete when storage is short: documents that no session has borrowed first, then the least
 * recently used, then the least used. This module mirrors server/vademecum/model/documents/cleanup_candidates.py; both
 * are tested with tests/conformance/cleanup_candidates.json.
 */

import { compareStrings } from "../../lib/compareStrings.ts";
import type { DocumentDoc } from "../schema/rows.ts";

/**
 * Number of documents from which the app warns about the limit, as in server/vademecum/model/sync/quotas.py.
 */
export const WARN_FROM = 90;

type Candidate = Pick<DocumentDoc, "id" | "activeSessions" | "lastAccessedAt" | "accessCount">;

/** Return the `count` best candidates for deletion, the best first. */
export function suggestCleanup<Document extends Candidate>(
  documents: readonly Document[],
  count: number,
): Document[] {
  return [...documents].sort(compareCandidates).slice(0, count);
}

export function compareCandidates(a: Candidate, b: Candidate): number {
  return (
    Number(a.activeSessions.length > 0) - Number(b.activeSessions.length > 0) ||
    compareStrings(a.lastAccessedAt, b.lastAccessedAt) ||
    a.accessCount - b.accessCount ||
    compareStrings(a.id, b.id)
  );
}
