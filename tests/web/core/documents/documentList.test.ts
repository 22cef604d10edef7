/** The list of documents: the filter, the sort order, and the state of each document. */

import {
  countDocuments,
  filterDocuments,
  sortDocuments,
  placeOf,
  stateOf,
  type Order,
} from "../../../../web/src/core/documents/documentList.ts";
import type { DocumentDoc } from "../../../../web/src/core/schema/rows.ts";

const REFUSED = {
  code: "DOCUMENT_LIMIT",
  message: "You have 100 documents.",
  at: "2026-03-01T00:00:00.000Z",
};

function make(id: string, more: Partial<DocumentDoc> = {}): DocumentDoc {
  const at = "2026-03-01T00:00:00.000Z";
  return {
    id,
    createdAt: at,
    updatedAt: at,
    userId: "u",
    originSessionId: "",
    activeSessions: [],
    accessCount: 0,
    lastAccessedAt: at,
    filename: `${id}.txt`,
    mimeType: "text/plain",
    size: 1,
    contentHash: "",
    chunkCount: 3,
    status: "ready",
    textHash: "",
    original: "none",
    fileRevision: 1,
    ...more,
  };
}

const ids = (documents: DocumentDoc[]) => documents.map(({ id }) => id);

test("a document is shown in the first state that applies to it", () => {
  const refused = make("a", { syncError: REFUSED, status: "pending" });
  expect(stateOf(refused, undefined)).toMatchObject({ kind: "refused", code: "DOCUMENT_LIMIT" });
  const failed = make("a", { status: "failed", statusDetail: "A part is missing." });
  expect(stateOf(failed, { done: 1, of: 3 })).toEqual({ kind: "failed", detail: "A part is missing." });
  const pending = make("a", { status: "pending" });
  expect(stateOf(pending, { done: 2, of: 3 })).toEqual({ kind: "embedding", done: 2, of: 3 });
  expect(stateOf(pending, undefined)).toEqual({ kind: "embedding", done: 0, of: 3 });
  expect(stateOf({ ...pending, chunkCount: 0 }, undefined)).toEqual({ kind: "reading" });
  expect(stateOf(make("a"), { done: 1, of: 3 })).toEqual({ kind: "ready" });
});

test("an unconfirmed document is not shown as synced", () => {
  const document = make("a", { createdAt: "2026-03-02T00:00:00.000Z" });
  const [before, after] = ["2026-03-01T00:00:00.000Z", "2026-03-03T00:00:00.000Z"];
  expect(placeOf({ ...document, syncError: REFUSED }, { waiting: 0, syncedAt: after })).toBe("here");
  expect(placeOf(document, { waiting: 1, syncedAt: before })).toBe("not yet there");
  expect(placeOf(document, { waiting: 1, syncedAt: null })).toBe("not yet there");
  expect(placeOf(document, { waiting: 1, syncedAt: after })).toBe("both");
  expect(placeOf(document, { waiting: 0, syncedAt: before })).toBe("both");
});

test("file names match regardless of case and accents", () => {
  const documents = [make("a", { filename: "Café Lease 2024.pdf" }), make("b", { filename: "lease.pdf" })];
  expect(ids(filterDocuments(documents, "lease cafe"))).toEqual(["a"]);
  expect(ids(filterDocuments(documents, " LEASE "))).toEqual(["a", "b"]);
  expect(ids(filterDocuments(documents, ""))).toEqual(["a", "b"]);
  expect(filterDocuments(documents, "will")).toEqual([]);
});

test.each<[Order, string[]]>([
  ["added", ["new", "big", "old"]],
  ["used", ["old", "big", "new"]],
  ["name", ["old", "new", "big"]],
  ["pages", ["big", "old", "new"]],
  ["size", ["big", "new", "old"]],
  ["missed", ["new", "big", "old"]],
])("documents sort by %s in both directions", (by, expected) => {
  const [first, second, third] = ["2026-01", "2026-02", "2026-03"].map((m) => `${m}-01T00:00:00.000Z`) as [
    string,
    string,
    string,
  ];
  const documents = [
    make("old", { createdAt: first, lastAccessedAt: third, filename: "part 2", pageCount: 2, size: 1 }),
    make("new", { createdAt: third, lastAccessedAt: first, filename: "part 10", size: 5 }),
    make("big", { createdAt: second, lastAccessedAt: second, filename: "Zoo", pageCount: 10, size: 9 }),
  ];
  expect(ids(sortDocuments(documents, by))).toEqual(expected);
  expect(ids(sortDocuments(documents, by, true))).toEqual([...expected].reverse());
});

test("a rejected document is counted only as a document on this device", () => {
  expect(countDocuments([make("a"), make("b", { syncError: REFUSED })])).toEqual({ held: 1, onlyHere: 1 });
});
