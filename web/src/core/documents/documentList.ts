/** The document list: filters, sort orders and the state of each document. */

import { compareStrings } from "../../lib/compareStrings.ts";
import { createMatcher } from "../text/wordMatch.ts";
import type { DocumentDoc } from "../schema/rows.ts";
import { compareCandidates } from "./cleanup_candidates.ts";

/** The `statusDetail` of a document of which search finds a part only by its words. */
export const NOT_EMBEDDED = "not_embedded";

export const ORDERS = ["added", "used", "name", "pages", "size", "missed"] as const;
export type Order = (typeof ORDERS)[number];

/** Embedding progress of a document: `done` of `of` chunks have vectors. */
export interface Progress {
  done: number;
  of: number;
}

export type DocumentState =
  | { kind: "refused"; code: string; message: string } // the server rejected the document, so it is only on this device
  | { kind: "failed"; detail: string }
  | { kind: "reading" } // the text has not arrived on this device
  | ({ kind: "embedding" } & Progress)
  | { kind: "ready" };

/** Return the state of a document. `progress` is the last known progress of its embedding. */
export function stateOf(document: DocumentDoc, progress: Progress | undefined): DocumentState {
  const { syncError, status, statusDetail, chunkCount } = document;
  if (syncError) return { kind: "refused", code: syncError.code, message: syncError.message };
  if (status === "failed") return { kind: "failed", detail: statusDetail ?? "" };
  if (status === "ready") return { kind: "ready" };
  if (chunkCount === 0) return { kind: "reading" };
  return { kind: "embedding", ...(progress ?? { done: 0, of: chunkCount }) };
}

/**
 * Return whether the server rejected a document because of a limit. The user can then delete other documents, or keep
 * this one only on this device.
 */
export function needsRoom({ code }: { code: string }): boolean {
  return code === "DOCUMENT_LIMIT" || code === "STORAGE_LIMIT";
}

/**
 * Return where a document is stored. `waiting` is the number of rows that the server has not acknowledged.
 */
export function placeOf(
  { syncError, createdAt }: DocumentDoc,
  { waiting, syncedAt }: { waiting: number; syncedAt: string | null },
): "here" | "not yet there" | "both" {
  if (syncError) return "here";
  return waiting > 0 && createdAt > (syncedAt ?? "") ? "not yet there" : "both";
}

/**
 * Return the documents whose name contains every word of `query`, in any order, ignoring accents and case.
 */
export function filterDocuments(documents: readonly DocumentDoc[], query: string): DocumentDoc[] {
  const fits = createMatcher(query);
  return documents.filter(({ filename }) => fits(filename));
}

export function sortDocuments(
  documents: readonly DocumentDoc[],
  by: Order,
  backwards = false,
): DocumentDoc[] {
  const sorted = [...documents].sort((a, b) => COMPARE[by](a, b) || compareStrings(a.id, b.id));
  return backwards ? sorted.reverse() : sorted;
}

const NAMES = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/**
 * Comparators of the sort orders: newest, last used, most pages and largest first, names from A to Z, and for `missed`
 * the best candidates for deletion first.
 */
const COMPARE: Record<Order, (a: DocumentDoc, b: DocumentDoc) => number> = {
  added: (a, b) => compareStrings(b.createdAt, a.createdAt),
  used: (a, b) => compareStrings(b.lastAccessedAt, a.lastAccessedAt),
  name: (a, b) => NAMES.compare(a.filename, b.filename),
  pages: (a, b) => (b.pageCount ?? 0) - (a.pageCount ?? 0),
  size: (a, b) => b.size - a.size,
  missed: compareCandidates,
};

/**
 * Count the documents on this device: the server has rejected those in `onlyHere`; it has, or will get, those in
 * `held`.
 */
export function countDocuments(documents: readonly DocumentDoc[]): { held: number; onlyHere: number } {
  const onlyHere = documents.filter(({ syncError }) => syncError).length;
  return { held: documents.length - onlyHere, onlyHere };
}
