/**
 * Keeps all collections of a database in step with the server.
 *
 * A restored server has another epoch. What the device knows of it is then worth nothing, so every collection starts
 * again from zero under a new replication identifier (RxDB keeps its checkpoints by that) and pushes what it holds;
 * the conflict handler unites both sides.
 */

import type { RxCollection, RxConflictHandler, WithDeleted } from "rxdb/plugins/core";
import { defaultConflictHandler } from "rxdb/plugins/core";
import { replicateRxCollection, type RxReplicationState } from "rxdb/plugins/replication";
import { BehaviorSubject, Subject } from "rxjs";
import { reunite, type Row } from "../../model/reunite.ts";
import { follow, pause, type Page } from "./stream.ts";
import { Refusal, request, type Wire } from "./wire.ts";

export interface Checkpoint {
  lwt: number;
  id: string;
}

/** Where the epoch is remembered between visits, one a device and account. */
export interface EpochStore {
  load(): Promise<string | undefined>;
  save(epoch: string): Promise<void>;
}

export interface SyncOptions {
  wire: Wire;
  collections: Record<string, RxCollection>;
  epochs: EpochStore;
  retryMs?: number;
  waitForLeadership?: boolean;
}

export type SyncState =
  | { kind: "starting" }
  | { kind: "live" }
  | { kind: "waiting"; error: unknown } // tried again by itself
  | { kind: "stopped"; error: Refusal | undefined }; // this app is too old for the server, or was stopped

type Replication = RxReplicationState<Row, Checkpoint>;
type Event = { documents: WithDeleted<Row>[]; checkpoint: Checkpoint } | "RESYNC";

/** For collections that are synced: give it to `addCollections`. */
export const conflictHandler: RxConflictHandler<Row> = {
  isEqual: defaultConflictHandler.isEqual,
  // With a common past the server has merged already, and its answer is the merged row.
  resolve: async ({ newDocumentState, assumedMasterState, realMasterState }) =>
    assumedMasterState === undefined
      ? (reunite(newDocumentState, realMasterState) as WithDeleted<Row>)
      : realMasterState,
};

export class Sync {
  readonly state$ = new BehaviorSubject<SyncState>({ kind: "starting" });
  readonly #options: Required<SyncOptions>;
  #generation = new AbortController();
  #replications = new Map<string, Replication>();
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: SyncOptions) {
    this.#options = { retryMs: 5_000, waitForLeadership: true, ...options };
  }

  async start(): Promise<void> {
    const known = await this.#options.epochs.load();
    await this.#begin(known ?? (await this.#askEpoch()));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#generation.abort();
    await Promise.all([...this.#replications.values()].map((replication) => replication.cancel()));
    await this.#running;
    this.state$.next({ kind: "stopped", error: undefined });
  }

  /** Resolves when nothing is left to send or to fetch at this moment. */
  async awaitInSync(): Promise<void> {
    for (const replication of this.#replications.values()) await replication.awaitInSync();
  }

  reSync(): void {
    for (const replication of this.#replications.values()) replication.reSync();
  }

  async #begin(epoch: string): Promise<void> {
    if (this.#stopped || !epoch) return;
    await this.#options.epochs.save(epoch);
    const generation = (this.#generation = new AbortController());
    const events = new Map<string, Subject<Event>>();
    for (const [name, collection] of Object.entries(this.#options.collections)) {
      const stream = new Subject<Event>();
      events.set(name, stream);
      this.#replications.set(name, this.#replicate(name, collection, epoch, stream, generation.signal));
    }
    const versions = Object.fromEntries(
      Object.entries(this.#options.collections).map(([name, c]) => [name, c.schema.version]),
    );
    const toAll = (event: Event) => events.forEach((stream) => stream.next(event));
    this.#running = follow(
      this.#options.wire,
      versions,
      {
        connected: () => (this.state$.next({ kind: "live" }), toAll("RESYNC")),
        page: ({ collection, documents, checkpoint }: Page) =>
          events.get(collection)?.next({ documents: documents as WithDeleted<Row>[], checkpoint }),
        broken: (error) => this.#onError(error, epoch),
      },
      generation.signal,
    );
  }

  #replicate(
    name: string,
    collection: RxCollection,
    epoch: string,
    stream$: Subject<Event>,
    signal: AbortSignal,
  ): Replication {
    const { wire, retryMs, waitForLeadership } = this.#options;
    const base = `/v1/sync/${name}/${collection.schema.version}`;
    return replicateRxCollection<Row, Checkpoint>({
      replicationIdentifier: `${wire.base}${base}#${epoch}`,
      collection: collection as RxCollection<Row>,
      retryTime: retryMs,
      waitForLeadership,
      pull: {
        batchSize: 100,
        stream$: stream$.asObservable(),
        handler: (checkpoint, limit) => {
          const query = new URLSearchParams({
            lwt: String(checkpoint?.lwt ?? 0),
            id: checkpoint?.id ?? epoch,
            limit: String(limit),
          });
          return this.#guarded(epoch, request(wire, `${base}/pull?${query}`, { signal }));
        },
      },
      push: {
        batchSize: 100,
        handler: (rows) => {
          const init = { method: "POST", body: JSON.stringify(rows), signal };
          return this.#guarded(epoch, request(wire, `${base}/push?epoch=${encodeURIComponent(epoch)}`, init));
        },
      },
    });
  }

  /** Sees an error before RxDB does, which retries all of them alike. */
  async #guarded<T>(epoch: string, answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      this.#onError(error, epoch);
      throw error;
    }
  }

  #onError(error: unknown, epoch: string): void {
    if (this.#stopped || this.#generation.signal.aborted) return;
    if (error instanceof Refusal && error.code === "EPOCH") return void this.#restart(epoch);
    if (error instanceof Refusal && error.code === "OUTDATED") {
      return void this.stop().then(() => this.state$.next({ kind: "stopped", error }));
    }
    this.state$.next({ kind: "waiting", error });
  }

  /** The server was restored: forget every checkpoint, and begin again under the new epoch. */
  async #restart(epoch: string): Promise<void> {
    if (this.#generation.signal.aborted) return; // another collection has seen it first
    this.#generation.abort();
    const next = await this.#askEpoch();
    await Promise.all(
      [...this.#replications.values()].map((replication) =>
        next === epoch ? replication.cancel() : replication.remove(),
      ),
    );
    await this.#begin(next);
  }

  /** An empty page names the epoch. Asked until the server answers. */
  async #askEpoch(): Promise<string> {
    const stop = new AbortController();
    const [first] = Object.entries(this.#options.collections);
    if (!first) throw new Error("There is nothing to sync.");
    const path = `/v1/sync/${first[0]}/${first[1].schema.version}/pull?limit=1&lwt=${Number.MAX_SAFE_INTEGER}`;
    while (!this.#stopped) {
      try {
        return (await request<{ checkpoint: Checkpoint }>(this.#options.wire, path)).checkpoint.id;
      } catch (error) {
        this.state$.next({ kind: "waiting", error });
        await pause(this.#options.retryMs, stop.signal);
      }
    }
    return "";
  }
}
