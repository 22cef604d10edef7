/**
 * Keeps all collections of a database in step with the server.
 *
 * A restored server has another epoch. What the device knows of it is then worth nothing, so every collection starts
 * again from zero under a new replication identifier (RxDB keeps its checkpoints by that) and pushes what it holds;
 * the conflict handler unites both sides.
 */

import type { RxCollection, WithDeleted } from "rxdb/plugins/core";
import { replicateRxCollection } from "rxdb/plugins/replication";
import { BehaviorSubject, Subject } from "rxjs";
import { isQuotaExceeded } from "../../lib/quotaExceeded.ts";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { sleep } from "../../lib/sleep.ts";
import { IDLE_TIMEOUT_MS, STREAM_IDLE_TIMEOUT_MS } from "../../lib/idleTimeout.ts";
import { ForgottenRows } from "./deleteForgotten.ts";
import { refreshWrites, type Write } from "./refreshWrites.ts";
import { epochOf, pullNow, requestPage, type Checkpoint, type Replication } from "./pull.ts";
import { push } from "./push.ts";
import { RetryAfter } from "../../lib/backoff.ts";
import { subscribeToServer, type EmbeddingProgress, type Page } from "./stream.ts";
import { countPendingRows } from "./pendingRows.ts";
import { notOurServer, isBusy, ApiError, requestJson, type Server } from "../../lib/http.ts";

/** What a device knows of an account's records on the server. */
export interface ServerKnowledge {
  epoch?: string;
  /** Drawn at each start from zero, for replication identifiers that no earlier start has used. */
  round?: string;
  /** The last "forget everything" that was carried out here, too. */
  forgottenAt?: string;
}

/** Where it is remembered between visits. `save` leaves what is not given. */
export interface ServerKnowledgeStore {
  load(): Promise<ServerKnowledge>;
  save(known: ServerKnowledge): Promise<void>;
}

interface SyncOptions {
  server: Server;
  collections: Record<string, RxCollection>;
  store: ServerKnowledgeStore;
  /** Did this turn come out of an export, with what was made of it? */
  isImported?: (turn: Row) => Promise<boolean>;
  retryMs?: number;
  waitForLeadership?: boolean;
  timeouts?: Timeouts;
}

/** For how long nothing may be heard from the server; then it is tried again as after any failure. */
export interface Timeouts {
  pullMs: number;
  /** And longer for what takes longer to send. */
  pushMs: number;
  streamMs: number;
}

const TIMEOUTS: Timeouts = { pullMs: IDLE_TIMEOUT_MS, pushMs: 60_000, streamMs: STREAM_IDLE_TIMEOUT_MS };
/** Characters that a bad network takes in a millisecond: nobody hears how much of a push has gone. */
const MIN_CHARS_PER_MS = 10;
/** So long after there was no room left it is looked whether there is some. */
const FULL_RETRY_MS = 60_000;
/** What failed has waited before RxDB hears of it. */
const RXDB_RETRY_MS = 10;

export type SyncState =
  | { kind: "starting" }
  | { kind: "live" } // the server answers, and what was forgotten there is forgotten here
  | { kind: "waiting"; error: unknown } // tried again by itself
  | { kind: "stopped"; error: ApiError | undefined }; // this app is too old for the server, or was stopped

type Event = { documents: WithDeleted<Row>[]; checkpoint: Checkpoint } | "RESYNC";

export class Replicator {
  readonly state$ = new BehaviorSubject<SyncState>({ kind: "starting" });
  /** Each time that the stream stands. */
  readonly connected$ = new Subject<void>();
  /** Whether something is being sent or fetched. */
  readonly active$ = new BehaviorSubject(false);
  /** How far the server is with embedding a document. */
  readonly progress$ = new Subject<EmbeddingProgress>();
  readonly #options: Required<SyncOptions>;
  readonly #forgottenRows: ForgottenRows;
  readonly #retryAfter = new RetryAfter();
  #generation = new AbortController();
  #wake = new AbortController();
  #replications = new Map<string, Replication>();
  readonly #active = new Set<string>();
  readonly #counts = new Map<string, number>();
  #running: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(options: SyncOptions) {
    const usual = {
      retryMs: 5_000,
      waitForLeadership: true,
      timeouts: TIMEOUTS,
      isImported: async () => false,
    };
    this.#options = { ...usual, ...options };
    this.#forgottenRows = new ForgottenRows(options.collections, options.store);
  }

  start(): Promise<void> {
    return this.#retryUntilStopped(async () => {
      const { epoch, round } = await this.#options.store.load();
      await this.#startReplication(epoch ?? (await this.#fetchEpoch()), round);
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#generation.abort();
    await Promise.all([...this.#replications.values()].map((replication) => replication.cancel()));
    await this.#running;
    this.state$.next({ kind: "stopped", error: undefined });
  }

  /** Resolves when nothing is left to send or to fetch at this moment. */
  async awaitInSync(): Promise<void> {
    for (const replication of this.#replications.values()) await replication.awaitInSync();
  }

  /** Whether each collection has been counted: one that begins later than others may have rows of an earlier visit. */
  get hasCounted(): boolean {
    return Object.keys(this.#options.collections).every((name) => this.#counts.has(name));
  }

  /**
   * Rows that were written here and not answered for: of each collection that has any, counted up to `most`. Of one that
   * was stopped, as it was counted last.
   */
  async countPending(most: number): Promise<Record<string, number>> {
    await Promise.all(
      [...this.#replications].map(async ([name, replication]) => {
        try {
          const count = replication.isStopped() ? undefined : await countPendingRows(replication, most);
          if (count !== undefined) this.#counts.set(name, count);
        } catch (error) {
          if (!replication.isStopped()) throw error; // else it was closed while it was asked
        }
      }),
    );
    return Object.fromEntries([...this.#counts].filter(([, count]) => count > 0));
  }

  /** The storage in which RxDB keeps what the server last had of a collection, once it is known. */
  metaStorageOf(name: string): string | undefined {
    return this.#replications.get(name)?.metaInstance?.collectionName;
  }

  /** Looks at once, and does not wait until the stream would be tried again. */
  syncNow(): void {
    this.#skipDelays();
    this.#pullAll();
  }

  #pullAll(): void {
    for (const replication of this.#replications.values()) pullNow(replication);
  }

  async #startReplication(epoch: string, round = ""): Promise<void> {
    if (!this.#stopped) await this.#options.store.save({ epoch, round });
    if (this.#stopped) return;
    const generation = (this.#generation = new AbortController());
    const events = new Map<string, Subject<Event>>();
    for (const [name, collection] of Object.entries(this.#options.collections)) {
      const stream = new Subject<Event>();
      events.set(name, stream);
      const replication = this.#replicate(name, collection, epoch, round, stream, generation.signal);
      this.#replications.set(name, replication);
      replication.active$.subscribe((active) => {
        if (active) this.#active.add(name);
        else this.#active.delete(name);
        this.active$.next(this.#active.size > 0);
      });
    }
    const versions = Object.fromEntries(
      Object.entries(this.#options.collections).map(([name, c]) => [name, c.schema.version]),
    );
    this.#running = subscribeToServer(
      this.#options.server,
      versions,
      {
        connected: () => (this.#skipDelays(), this.connected$.next(), this.#pullAll()),
        page: ({ collection, documents, checkpoint, forgottenAt }: Page) => {
          this.#forgottenRows.apply(forgottenAt).catch((error: unknown) => this.#onError(error));
          events.get(collection)?.next({ documents: documents as WithDeleted<Row>[], checkpoint });
        },
        progress: (progress) => this.progress$.next(progress),
        broken: (error) => this.#onError(error),
      },
      {
        signal: generation.signal,
        impatience: () => this.#wake.signal,
        allowed: () => this.#retryAfter.wait(generation.signal),
        silenceMs: this.#options.timeouts.streamMs,
      },
    );
  }

  #replicate(
    name: string,
    collection: RxCollection,
    epoch: string,
    round: string,
    stream$: Subject<Event>,
    signal: AbortSignal,
  ): Replication {
    const { server, waitForLeadership, timeouts: patience, isImported } = this.#options;
    const base = `/v1/sync/${name}/${collection.schema.version}`;
    const replication = replicateRxCollection<Row, Checkpoint>({
      replicationIdentifier: `${server.base}${base}#${epoch}${round && `.${round}`}`,
      collection: collection as RxCollection<Row>,
      retryTime: RXDB_RETRY_MS,
      waitForLeadership,
      pull: {
        batchSize: 100,
        stream$: stream$.asObservable(),
        handler: async (checkpoint, limit) => {
          const query = new URLSearchParams({
            lwt: String(checkpoint?.lwt ?? 0),
            id: checkpoint?.id ?? epoch,
            limit: String(limit),
          });
          return this.#withRetryDelay(signal, async () => {
            const path = `${base}/pull?${query}`;
            const page = await requestPage(server, path, signal, patience.pullMs);
            await this.#forgottenRows.apply(page.forgottenAt);
            if (!this.#isLive && !this.#stopped && !this.#retryAfter.isActive)
              this.state$.next({ kind: "live" });
            return page;
          });
        },
      },
      push: {
        batchSize: 100,
        handler: (writes) => {
          return this.#withRetryDelay(signal, async () => {
            const path = `${base}/push?epoch=${encodeURIComponent(epoch)}`;
            let sent = 0;
            const send = (body: string) => this.#sendPush(path, body, signal, sent++ === 0);
            const answer = await push(await refreshWrites(collection, writes as Write[], isImported), send);
            // The server is back, but what was forgotten there a pull alone tells.
            if (!this.#isLive) pullNow(this.#replications.get(name)!);
            return answer;
          });
        },
      },
    });
    replication.error$.subscribe((error) => {
      // With a direction it comes from a handler, which is tried again as after any failure.
      if (error.parameters?.direction === undefined && isQuotaExceeded(error))
        void this.#pauseUntilRoom(error, epoch);
    });
    return replication;
  }

  /**
   * Asks when the server may be asked, and sees an error before RxDB does, which retries all of them alike. RxDB hears of
   * it when it is time to try again: its own waiting nothing cuts short, not even that the server is back.
   */
  async #withRetryDelay<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    await this.#retryAfter.wait(signal);
    try {
      return await ask();
    } catch (error) {
      this.#onError(error);
      await sleep(this.#options.retryMs, AbortSignal.any([signal, this.#wake.signal]));
      throw error;
    }
  }

  /**
   * All but the first of a batch are sent again by themselves once a wait that the server asks for is over: what went
   * before is not to be repeated. The first is repeated by RxDB, as the rows are by then.
   */
  async #sendPush(path: string, body: string, signal: AbortSignal, isFirst: boolean) {
    const { server, timeouts: patience, retryMs } = this.#options;
    const silenceMs = patience.pushMs + body.length / MIN_CHARS_PER_MS;
    for (;;) {
      await this.#retryAfter.wait(signal);
      try {
        const init = { method: "POST", body, signal };
        const answer = await requestJson<WithDeleted<Row>[]>(server, path, init, silenceMs);
        if (!Array.isArray(answer)) throw notOurServer();
        return answer;
      } catch (error) {
        if (isFirst || !isBusy(error) || signal.aborted) throw error;
        this.#onError(error);
        await sleep(retryMs, AbortSignal.any([signal, this.#wake.signal]));
      }
    }
  }

  get #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  get #isLive(): boolean {
    return this.state$.value.kind === "live";
  }

  /** Cuts short whatever waits to try again. */
  #skipDelays(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  #onError(error: unknown): void {
    if (this.#stopped || this.#generation.signal.aborted) return;
    if (error instanceof ApiError && error.code === "EPOCH") return void this.#restart();
    if (error instanceof ApiError && error.code === "OUTDATED") {
      return void this.stop().then(() => this.state$.next({ kind: "stopped", error }));
    }
    this.#setWaiting(error);
  }

  /** An error that comes while the server is left alone says nothing new. */
  #setWaiting(error: unknown): void {
    if (this.#retryAfter.isActive && !isBusy(error)) return;
    this.#retryAfter.record(error);
    this.state$.next({ kind: "waiting", error });
  }

  /**
   * There is no room on this device for what came. RxDB tells it, and takes what comes next for all there is: so all of
   * it ends at once, and begins later where it was.
   */
  async #pauseUntilRoom(full: unknown, epoch: string): Promise<void> {
    if (this.#stopped || this.#generation.signal.aborted) return;
    this.#abortReplications();
    await this.#waitForRoom(full);
    await Promise.allSettled([...this.#replications.values()].map((each) => each.cancel()));
    const { round } = await this.#options.store.load();
    await this.#retryUntilStopped(() => this.#startReplication(epoch, round));
  }

  /** Tries again for as long as it fails, as when there is not even room for what is known of the server. */
  async #retryUntilStopped(begin: () => Promise<void>): Promise<void> {
    while (!this.#stopped) {
      try {
        return await begin();
      } catch (error) {
        await this.#waitForRoom(error);
      }
    }
  }

  async #waitForRoom(error: unknown): Promise<void> {
    this.#setWaiting(error);
    await sleep(FULL_RETRY_MS, AbortSignal.any([this.#stopping.signal, this.#wake.signal]));
  }

  /**
   * Ends at once what goes on, and what would be tried again. RxDB's own cancel comes later: it closes what tells how
   * much waits.
   */
  #abortReplications(): void {
    this.#generation.abort();
    for (const { internalReplicationState } of this.#replications.values()) {
      internalReplicationState?.events.canceled.next(true);
      internalReplicationState?.events.paused.next(true);
    }
  }

  /** The server was restored, or this device is ahead of it: drop every checkpoint and begin again from zero. */
  async #restart(): Promise<void> {
    if (this.#generation.signal.aborted) return; // another collection has seen it first
    this.#abortReplications();
    const next = await this.#fetchEpoch();
    if (this.#stopped) return;
    this.#counts.clear(); // all of it may have to be sent anew
    await Promise.allSettled(
      [...this.#replications.values()].map((replication) =>
        replication.remove().catch(() => replication.cancel()),
      ),
    );
    await this.#retryUntilStopped(() => this.#startReplication(next, crypto.randomUUID()));
  }

  /** An empty page names the epoch. Asked until the server answers; empty: stopped before it did. */
  async #fetchEpoch(): Promise<string> {
    const { signal } = this.#stopping;
    const [[name, { schema }]] = Object.entries(this.#options.collections) as [[string, RxCollection]];
    const path = `/v1/sync/${name}/${schema.version}/pull?limit=1&lwt=${Number.MAX_SAFE_INTEGER}`;
    while (!this.#stopped) {
      try {
        return epochOf((await requestPage(this.#options.server, path, signal)).checkpoint);
      } catch (error) {
        if (this.#stopped) break;
        this.#setWaiting(error);
        await sleep(this.#options.retryMs, AbortSignal.any([signal, this.#wake.signal]));
        await this.#retryAfter.wait(signal);
      }
    }
    return "";
  }
}
