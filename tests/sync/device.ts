/** A device: an RxDB database with the project's schemas and RxDB's validator, and rows to put into it. */

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
import { replicatePlain, type Plain } from "./plain.ts";
import type { Row } from "../../web/src/core/sync/twoWayMerge.ts";

export const T = "2026-01-01T00:00:00.000Z";
export const now = () => new Date().toISOString();

export class Device {
  private constructor(
    readonly db: RxDatabase<Record<string, RxCollection>>,
    readonly harness: Harness,
    readonly user: User,
  ) {}

  readonly plain = new Map<string, Plain>();
  readonly pushes: { rows: any[]; answer: any[] }[] = [];
  /** Failures of the unmodified client: RxDB's code and the server's answer. */
  readonly failures: string[] = [];
  sync: Replicator | undefined;

  /** `own`: with the app's conflict handler, or another one for each collection. */
  static async make(
    harness: Harness,
    user: User,
    names: string[],
    own: boolean | ((name: string) => RxConflictHandler<any>) = false,
  ): Promise<Device> {
    const storage = wrappedValidateAjvStorage({ storage: getRxStorageMemory() });
    const db = await createRxDatabase({ name: `d${randomUUID()}`, storage, multiInstance: false });
    const version = env["RXDB_VERSION"]; // set by vitest.config.ts, which replaces the import
    if (version && db.rxdbVersion !== version) throw new Error(`This is RxDB ${db.rxdbVersion}.`);
    const resolving = (name: string) => (typeof own === "boolean" ? conflictHandler : own(name));
    const collections = Object.fromEntries(
      names.map((name) => [
        name,
        { schema: schema(name), ...(own ? { conflictHandler: resolving(name) } : {}) },
      ]),
    );
    await db.addCollections(collections);
    return new Device(db, harness, user);
  }

  of(name: string): RxCollection {
    const found = this.db.collections[name];
    if (!found) throw new Error(`This device has no ${name}.`);
    return found;
  }

  /** Live replication of all collections, as an unmodified client. */
  async online(): Promise<void> {
    this.connect();
    await this.settled();
  }

  /** Start the same and do not wait. With an epoch, begin from zero in it (docs/wire.md). */
  connect(epoch?: string): void {
    const endpoint = { url: this.harness.url, token: this.user.token, ...(epoch ? { epoch } : {}) };
    const note = (rows: any[], answer: any[]) => void this.pushes.push({ rows, answer });
    for (const name of Object.keys(this.db.collections)) {
      const state = replicatePlain(this.of(name), name, endpoint, true, note);
      state.error$.subscribe(({ code, parameters }) => {
        for (const { message } of parameters.errors ?? []) this.failures.push(`${code} ${message}`);
      });
      this.plain.set(name, state);
    }
  }

  async offline(): Promise<void> {
    await Promise.all([...this.plain.values()].map((state) => state.cancel()));
    this.plain.clear();
  }

  /** What is here is sent and what is there is fetched. */
  async settled(): Promise<void> {
    for (const state of this.plain.values()) await state.awaitInSync();
    for (const state of this.plain.values()) state.reSync();
    for (const state of this.plain.values()) await state.awaitInSync();
  }

  /** The app's own adapter. */
  async own(
    known = memory(),
    patience?: Timeouts,
    base = this.harness.url,
    isImported: (turn: Row) => Promise<boolean> = async () => false,
  ): Promise<Replicator> {
    this.sync = new Replicator({
      server: { base, headers: { authorization: `Bearer ${this.user.token}` } },
      collections: this.db.collections,
      store: known,
      isImported,
      retryMs: 100,
      waitForLeadership: false,
      ...(patience ? { timeouts: patience } : {}),
    });
    await this.sync.start();
    await this.sync.awaitInSync();
    return this.sync;
  }

  async insert(name: string, ...rows: object[]): Promise<void> {
    const { error } = await this.of(name).bulkInsert(rows);
    if (error.length) throw new Error(JSON.stringify(error.map((e) => e.status)));
  }

  async edit(name: string, id: string, change: (row: any) => object): Promise<void> {
    const document = await this.of(name).findOne(id).exec(true);
    await document.incrementalModify((row: any) => {
      const edited: any = { ...row, ...change(row), updatedAt: now() };
      for (const key of Object.keys(edited)) if (edited[key] === undefined) delete edited[key];
      return edited;
    });
  }

  async remove(name: string, id: string): Promise<void> {
    await (await this.of(name).findOne(id).exec(true)).remove();
  }

  async row(name: string, id: string): Promise<any> {
    return (await this.of(name).findOne(id).exec())?.toMutableJSON();
  }

  async rows(name: string): Promise<any[]> {
    return (await this.of(name).find().exec()).map((d) => d.toMutableJSON());
  }

  async close(): Promise<void> {
    await this.offline();
    await this.sync?.stop();
    await this.db.close();
  }
}

export function memory(): ServerKnowledgeStore {
  let known: ServerKnowledge = {};
  return { load: async () => known, save: async (changed) => void (known = { ...known, ...changed }) };
}

function schema(name: string) {
  return JSON.parse(readFileSync(`schemas/${name}.v0.json`, "utf8"));
}

// -- rows ----------------------------------------------------------------------------------------------------

const common = (id: string) => ({ id, createdAt: T, updatedAt: T });

export const session = (id: string, more: object = {}) => ({
  ...common(id),
  title: id,
  mode: "analysis",
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
  ...more,
});

export const block = (documentId: string, number: number, texts: string[], more: object = {}) => ({
  ...common(`${documentId}.${number}`),
  documentId,
  block: number,
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
