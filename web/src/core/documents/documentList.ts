/** The documents as a list: which of them, in which order, and what is to be said of each. */

import { compareStrings } from "../../lib/compareStrings.ts";
import { createMatcher } from "../text/wordMatch.ts";
import type { DocumentDoc } from "../schema/rows.ts";
import { compareCandidates } from "./cleanup_candidates.ts";

export const ORDERS = ["added", "used", "name", "pages", "size", "missed"] as const;
export type Order = (typeof ORDERS)[number];

/** How many passages of a document have vectors. */
export interface Progress {
  done: number;
  of: number;
}

export type DocumentState =
  | { kind: "refused"; code: string; message: string } // only on this device
  | { kind: "failed"; detail: string }
  | { kind: "reading" } // its text is not here yet
  | ({ kind: "embedding" } & Progress)
  | { kind: "ready" };

/** The first thing that is true of it. `progress`: as it was last heard of. */
export function stateOf(document: DocumentDoc, progress: Progress | undefined): DocumentState {
  const { syncError, status, statusDetail, chunkCount } = document;
  if (syncError) return { kind: "refused", code: syncError.code, message: syncError.message };
  if (status === "failed") return { kind: "failed", detail: statusDetail ?? "" };
  if (status === "ready") return { kind: "ready" };
  if (chunkCount === 0) return { kind: "reading" };
  return { kind: "embedding", ...(progress ?? { done: 0, of: chunkCount }) };
}

/** Whether it was refused for want of room on the server: one chooses what goes, or keeps it here. */
export function needsRoom({ code }: { code: string }): boolean {
  return code === "DOCUMENT_LIMIT" || code === "STORAGE_LIMIT";
}

/** Where it is. `waiting`: rows of this device that the server has not answered for. */
export function placeOf(
  { syncError, createdAt }: DocumentDoc,
  { waiting, syncedAt }: { waiting: number; syncedAt: string | null },
): "here" | "not yet there" | "both" {
  if (syncError) return "here";
  return waiting > 0 && createdAt > (syncedAt ?? "") ? "not yet there" : "both";
}

/** Those whose name has every word of `query`, in any order, accents and case aside. */
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

/** Each in the order in which one would look: newest, last used and largest first, names from A on. */
const COMPARE: Record<Order, (a: DocumentDoc, b: DocumentDoc) => number> = {
  added: (a, b) => compareStrings(b.createdAt, a.createdAt),
  used: (a, b) => compareStrings(b.lastAccessedAt, a.lastAccessedAt),
  name: (a, b) => NAMES.compare(a.filename, b.filename),
  pages: (a, b) => (b.pageCount ?? 0) - (a.pageCount ?? 0),
  size: (a, b) => b.size - a.size,
  missed: compareCandidates,
};

/** Of the rows on this device: those that the server counts, and those that it refused. */
export function countDocuments(documents: readonly DocumentDoc[]): { held: number; onlyHere: number } {
  const onlyHere = documents.filter(({ syncError }) => syncError).length;
  return { held: documents.length - onlyHere, onlyHere };
}
