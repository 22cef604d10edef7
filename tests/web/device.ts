/** The database of a device in memory, for tests without a server. */

import { randomUUID } from "node:crypto";
import { getRxStorageMemory } from "rxdb/plugins/storage-memory";
import type { RxCollection, RxStorage } from "rxdb/plugins/core";
import type { DeviceDatabase, DeviceAccount } from "../../web/src/storage/deviceDatabase.ts";
import { openAccountDatabase, type AccountDatabase } from "../../web/src/storage/accountDatabase.ts";
import { schemas } from "../../web/src/storage/schemas.ts";
import { conflictHandler } from "../../web/src/backend/sync/conflictHandler.ts";
import type { Collections } from "../../web/src/core/schema/rows.ts";
import { AccountContext } from "../../web/src/backend/account/accountContext.ts";
import { NEW_DOCUMENT_FIELDS, NEW_SESSION_FIELDS } from "../sync/wire.ts";
import { migrations } from "../../web/src/storage/migrations.ts";

export const T = "2026-01-01T00:00:00.000Z";
type Name = keyof Collections;

/** Open an account database that is closed after the test. */
export async function openRows(
  storage: RxStorage<any, any> = getRxStorageMemory(),
): Promise<AccountDatabase> {
  const records = await openAccountDatabase(randomUUID(), () => conflictHandler, {
    schemas,
    migrations,
    storage,
  });
  onTestFinished(async () => void (await records.close()));
  return records;
}

export function collectionOf(records: AccountDatabase, name: string): RxCollection {
  return records.collections[name as Name] as RxCollection;
}

/** Default fields of rows. Their texts contain "secret", so that a test can check that tombstones omit them. */
const USUAL: Record<Name, object> = {
  documents: {
    ...{ userId: "u", originSessionId: "", activeSessions: [], accessCount: 0, lastAccessedAt: T },
    ...{ filename: "secret.txt", mimeType: "text/plain", size: 10, contentHash: "", chunkCount: 1 },
    ...NEW_DOCUMENT_FIELDS,
    status: "ready",
  },
  vectorEmbeddings: {
    ...{ textHash: "", model: "", dims: 0, embedding: null },
    chunks: [{ index: 0, start: 0, text: "a secret", tokens: 2 }],
  },
  projects: { name: "secret", documentIds: [] },
  sessions: { title: "secret", mode: "analysis", ...NEW_SESSION_FIELDS },
  episodes: { userMessage: "secret?", aiResponse: "secret.", citations: [], status: "done" },
  facts: { key: "rent", value: "secret", sourceRemoved: false, confidence: 1, confirmed: true },
  memories: { text: "secret", sessionIds: [], source: "user", pinned: false },
  entities: { name: "secret", type: "person" },
  relationships: { label: "secret" },
  summaries: { content: "secret" },
};

/** Return a row with default fields. A field that is null is left out, except `embedding`. */
export function row(name: string, given: object): Record<string, unknown> {
  const whole = { createdAt: T, updatedAt: T, ...USUAL[name as Name], ...given };
  const absent = ([field, value]: [string, unknown]) => value === null && field !== "embedding";
  return Object.fromEntries(Object.entries(whole).filter((entry) => !absent(entry)));
}

export async function insert(records: AccountDatabase, name: string, ...rows: object[]): Promise<void> {
  const { error } = await collectionOf(records, name).bulkInsert(rows.map((given) => row(name, given)));
  expect(error).toEqual([]);
}

/** Return a stored row or tombstone without RxDB's own fields. */
export async function stored(
  records: AccountDatabase,
  name: string,
  id: string,
): Promise<Record<string, unknown>> {
  const [found] = await collectionOf(records, name).storageInstance.findDocumentsById([id], true);
  const { _meta, _rev, _attachments, ...fields } = found as any;
  return fields;
}

/** Return an account context. `known` returns the account's row in the device database. */
export function contextOf(
  records: AccountDatabase,
  known: () => Partial<DeviceAccount> | undefined = () => undefined,
): AccountContext {
  const accounts = { get: async () => known(), update: async () => 0 };
  return new AccountContext(
    { userId: "u" } as DeviceAccount,
    records,
    { accounts } as unknown as DeviceDatabase,
    { base: "" },
  );
}

export interface Counted {
  storage: RxStorage<any, any>;
  /** Returns the number of rows that were read from a collection so far. */
  read(name: string): number;
}

/** Wrap a storage so that it counts the rows that queries and lookups by id return. */
export function counting(storage: RxStorage<any, any>): Counted {
  const counts = new Map<string, number>();
  const count = (name: string, rows: number) => void counts.set(name, (counts.get(name) ?? 0) + rows);
  const createStorageInstance: typeof storage.createStorageInstance = async (params) => {
    const instance = await storage.createStorageInstance(params);
    const { query, findDocumentsById } = instance;
    instance.query = async (prepared) => {
      const found = await query.call(instance, prepared);
      count(params.collectionName, found.documents.length);
      return found;
    };
    instance.findDocumentsById = async (ids, deleted) => {
      const found = await findDocumentsById.call(instance, ids, deleted);
      count(params.collectionName, found.length);
      return found;
    };
    return instance;
  };
  return { storage: { ...storage, createStorageInstance }, read: (name) => counts.get(name) ?? 0 };
}
