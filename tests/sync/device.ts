/** A device: an RxDB database with the project's schemas and RxDB's validator. Also builders of rows. */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { env } from "node:process";
import {
  createRxDatabase,
  type RxCollection,
  type RxConflictHandler,
  type RxDatabase,
} from "rxdb/plugins/core";
import { getRxStorageMemory } from "rxdb/plugins/storage-memory";
import { wrappedValidateAjvStorage } from "rxdb/plugins/validate-ajv";
import { conflictHandler } from "../../web/src/backend/sync/conflictHandler.ts";
import {
  Replicator,
  type ServerKnowledge,
  type ServerKnowledgeStore,
  type Timeouts,
} from "../../web/src/backend/sync/replication.ts";
import type { Harness, User } from "./harness.ts";
import { replicatePlain, type Replication } from "./plainClient.ts";
import type { Row } from "../../web/src/core/sync/twoWayMerge.ts";
import { NEW_DOCUMENT_FIELDS, NEW_SESSION_FIELDS, versionOf } from "./wire.ts";

export const T = "2026-01-01T00:00:00.000Z";
export const now = () => new Date().toISOString();

export class Device {
  private constructor(
    readonly db: RxDatabase<Record<string, RxCollection>>,
    readonly harness: Harness,
    readonly user: User,
  ) {}

  readonly replications = new Map<string, Replication>();
  readonly pushes: { rows: any[]; response: any[] }[] = [];
  /** Failures of the plain client: RxDB's code and the server's response. */
  readonly failures: string[] = [];
  sync: Replicator | undefined;

  /** `handler`: true for the app's conflict handler, or a function that returns one for each collection. */
  static async make(
    harness: Harness,
    user: User,
    names: string[],
    handler: boolean | ((name: string) => RxConflictHandler<any>) = false,
  ): Promise<Device> {
    const storage = wrappedValidateAjvStorage({ storage: getRxStorageMemory() });
    const db = await createRxDatabase({ name: `d${randomUUID()}`, storage, multiInstance: false });
    const version = env["RXDB_VERSION"]; // set by vitest.config.ts, which replaces the import
    if (version && db.rxdbVersion !== version) throw new Error(`This is RxDB ${db.rxdbVersion}.`);
    const handlerOf = (name: string) => (typeof handler === "boolean" ? conflictHandler : handler(name));
    const collections = Object.fromEntries(
      names.map((name) => [
        name,
        {
          schema: schema(name),
          // The database is new, so nothing is migrated, and RxDB's migration plugin is not needed.
          ...{ migrationStrategies: upgrades(name), autoMigrate: false },
          ...(handler ? { conflictHandler: handlerOf(name) } : {}),
        },
      ]),
    );
    await db.addCollections(collections);
    return new Device(db, harness, user);
  }

  collection(name: string): RxCollection {
    const collection = this.db.collections[name];
    if (!collection) throw new Error(`This device has no ${name}.`);
    return collection;
  }

  /** Start live replication of all collections as a plain client, and wait until it is in sync. */
  async online(): Promise<void> {
    this.connect();
    await this.settled();
  }

  /** Start live replication without waiting. With an epoch, start from zero in it (docs/wire.md). */
  connect(epoch?: string): void {
    const endpoint = { url: this.harness.url, token: this.user.token, ...(epoch ? { epoch } : {}) };
    const record = (rows: any[], response: any[]) => void this.pushes.push({ rows, response });
    for (const name of Object.keys(this.db.collections)) {
      const state = replicatePlain(this.collection(name), name, endpoint, true, record);
      state.error$.subscribe(({ code, parameters }) => {
        for (const { message } of parameters.errors ?? []) this.failures.push(`${code} ${message}`);
      });
      this.replications.set(name, state);
    }
  }

  async offline(): Promise<void> {
    await Promise.all([...this.replications.values()].map((state) => state.cancel()));
    this.replications.clear();
  }

  /** Wait until all local rows are pushed and all rows of the server are pulled. */
  async settled(): Promise<void> {
    for (const state of this.replications.values()) await state.awaitInSync();
    for (const state of this.replications.values()) state.reSync();
    for (const state of this.replications.values()) await state.awaitInSync();
  }

  /** Start the app's own replication and wait until it is in sync. */
  async startAppSync(
    store = memory(),
    timeouts?: Timeouts,
    base = this.harness.url,
    isImported: (turn: Row) => Promise<boolean> = async () => false,
  ): Promise<Replicator> {
    this.sync = new Replicator({
      server: { base, headers: { authorization: `Bearer ${this.user.token}` } },
      collections: this.db.collections,
      store,
      isImported,
      retryMs: 100,
      waitForLeadership: false,
      ...(timeouts ? { timeouts } : {}),
    });
    await this.sync.start();
    await this.sync.awaitInSync();
    return this.sync;
  }

  async insert(name: string, ...rows: object[]): Promise<void> {
    const { error } = await this.collection(name).bulkInsert(rows);
    if (error.length) throw new Error(JSON.stringify(error.map((e) => e.status)));
  }

  async edit(name: string, id: string, change: (row: any) => object): Promise<void> {
    const document = await this.collection(name).findOne(id).exec(true);
    await document.incrementalModify((row: any) => {
      const edited: any = { ...row, ...change(row), updatedAt: now() };
      for (const key of Object.keys(edited)) if (edited[key] === undefined) delete edited[key];
      return edited;
    });
  }

  async remove(name: string, id: string): Promise<void> {
    await (await this.collection(name).findOne(id).exec(true)).remove();
  }

  async row(name: string, id: string): Promise<any> {
    return (await this.collection(name).findOne(id).exec())?.toMutableJSON();
  }

  async rows(name: string): Promise<any[]> {
    return (await this.collection(name).find().exec()).map((document) => document.toMutableJSON());
  }

  async close(): Promise<void> {
    await this.offline();
    await this.sync?.stop();
    await this.db.close();
  }
}

/** Return a store that keeps what is known of the server in memory. */
export function memory(): ServerKnowledgeStore {
  let knowledge: ServerKnowledge = {};
  return {
    load: async () => knowledge,
    save: async (changed) => void (knowledge = { ...knowledge, ...changed }),
  };
}

function schema(name: string) {
  return JSON.parse(readFileSync(`schemas/${name}.v${versionOf(name)}.json`, "utf8"));
}

/** Return the upgrades that RxDB requires for a schema above version 0. */
function upgrades(name: string): Record<number, (row: object) => object> {
  return versionOf(name) === 0 ? {} : { 1: (row) => row };
}

// -- rows ----------------------------------------------------------------------------------------------------

const common = (id: string) => ({ id, createdAt: T, updatedAt: T });

export const session = (id: string, more: object = {}) => ({
  ...common(id),
  title: id,
  mode: "analysis",
  ...NEW_SESSION_FIELDS,
  ...more,
});

export const document = (id: string, user: User, more: object = {}) => ({
  ...common(id),
  userId: user.userId,
  originSessionId: "s1",
  activeSessions: [] as string[],
  accessCount: 0,
  lastAccessedAt: T,
  filename: `${id}.txt`,
  mimeType: "text/plain",
  size: 10,
  contentHash: "",
  chunkCount: 0,
  status: "pending",
  ...NEW_DOCUMENT_FIELDS,
  ...more,
});

export const block = (documentId: string, number: number, texts: string[], more: object = {}) => ({
  ...common(`${documentId}.${number}`),
  documentId,
  block: number,
  textHash: "",
  model: "test",
  dims: 4,
  chunks: texts.map((text, i) => ({ index: number * 16 + i, start: 0, text, tokens: 1 })),
  embedding: Buffer.from(new Float32Array(texts.length * 4).fill(0.5).buffer).toString("base64"),
  ...more,
});

export const episode = (id: string, sessionId: string, more: object = {}) => ({
  ...common(id),
  sessionId,
  userMessage: "q",
  aiResponse: "a",
  citations: [],
  status: "done",
  ...more,
});

export const fact = (id: string) => ({
  ...common(id),
  key: "user.name",
  value: "Ada",
  sourceRemoved: false,
  confidence: 1,
  confirmed: true,
});
