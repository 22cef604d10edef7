/**
 * Replicate all collections of a database with the server.
 *
 * A restored server has a new epoch, which invalidates all checkpoints. Every collection then starts from zero under a
 * new replication identifier, because RxDB stores checkpoints by identifier. It pushes all rows, and the conflict
 * handler merges both sides.
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

/** The state of an account's sync that this device stores. */
export interface ServerKnowledge {
  epoch?: string;
  /** Random id of the current sync from zero. It makes the replication identifiers unique. */
  round?: string;
  /** Time of the last "forget everything" that was applied on this device. */
  forgottenAt?: string;
}

/** Store of the server knowledge. `save` changes only the given fields. */
export interface ServerKnowledgeStore {
  load(): Promise<ServerKnowledge>;
  save(known: ServerKnowledge): Promise<void>;
}

interface SyncOptions {
  server: Server;
  collections: Record<string, RxCollection>;
  store: ServerKnowledgeStore;
  /** Return whether a turn was imported with its memories. */
  isImported?: (turn: Row) => Promise<boolean>;
  retryMs?: number;
  waitForLeadership?: boolean;
  timeouts?: Timeouts;
}

/** Idle timeouts. A request that exceeds its timeout is retried like any failure. */
export interface Timeouts {
  pullMs: number;
  /** Idle timeout of a push, in addition to the time allowed for sending the body. */
  pushMs: number;
  streamMs: number;
}

const TIMEOUTS: Timeouts = { pullMs: IDLE_TIMEOUT_MS, pushMs: 60_000, streamMs: STREAM_IDLE_TIMEOUT_MS };
/**
 * Assumed upload speed on a bad network, in characters per millisecond. It extends the timeout of a push, whose
 * progress is unknown.
 */
const MIN_CHARS_PER_MS = 10;
/** Delay before retrying when the disk was full. */
const FULL_RETRY_MS = 60_000;
/** Retry delay of RxDB. It is short, because failures are delayed before RxDB gets them (see `#withRetryDelay`). */
const RXDB_RETRY_MS = 10;

export type SyncState =
  | { kind: "starting" }
  | { kind: "live" } // the server responds, and its last "forget everything" is applied
  | { kind: "waiting"; error: unknown } // a request failed and is retried automatically
  | { kind: "stopped"; error: ApiError | undefined }; // this app is too old for the server, or the sync was stopped

type Event = { documents: WithDeleted<Row>[]; checkpoint: Checkpoint } | "RESYNC";

export class Replicator {
  readonly state$ = new BehaviorSubject<SyncState>({ kind: "starting" });
  /** Emits each time the stream connects. */
  readonly connected$ = new Subject<void>();
  /** Whether rows are being pushed or pulled. */
  readonly active$ = new BehaviorSubject(false);
  /** Progress of documents that the server embeds. */
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

  /** Resolve when nothing is left to push or pull. */
  async awaitInSync(): Promise<void> {
    for (const replication of this.#replications.values()) await replication.awaitInSync();
  }

  /**
   * Whether the pending rows of every collection were counted. A collection that is not counted yet may have pending
   * rows from before the app was opened.
   */
  get hasCounted(): boolean {
    return Object.keys(this.#options.collections).every((name) => this.#counts.has(name));
  }

  /**
   * Return the number of pending rows by collection, counted up to `most`. A stopped collection keeps its last count.
   */
  async countPending(most: number): Promise<Record<string, number>> {
    await Promise.all(
      [...this.#replications].map(async ([name, replication]) => {
        try {
          const count = replication.isStopped() ? undefined : await countPendingRows(replication, most);
          if (count !== undefined) this.#counts.set(name, count);
        } catch (error) {
          if (!replication.isStopped()) throw error; // ignore the error if the replication was stopped during the count
        }
      }),
    );
    return Object.fromEntries([...this.#counts].filter(([, count]) => count > 0));
  }

  /** Return the name of the storage of a collection's replication metadata, or undefined before it exists. */
  metaStorageOf(name: string): string | undefined {
    return this.#replications.get(name)?.metaInstance?.collectionName;
  }

  /** Pull now, and end all retry delays. */
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
            // The server is reachable again. Pull to become live, because only a pull reports the last "forget
            // everything".
            if (!this.#isLive) pullNow(this.#replications.get(name)!);
            return answer;
          });
        },
      },
    });
    replication.error$.subscribe((error) => {
      // An error with a direction comes from a push or pull handler, whose failures are retried. Handle only a failure
      // to store rows.
      if (error.parameters?.direction === undefined && isQuotaExceeded(error))
        void this.#pauseUntilRoom(error, epoch);
    });
    return replication;
  }

  /**
   * Send a request after Retry-After has passed. If it fails, wait for the retry delay before throwing the error.
   * RxDB's own retry delay cannot be ended early when the server is reachable again.
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
   * Send one request of a batch. While the server is busy, this method retries any request but the first, so that RxDB
   * does not repeat the earlier requests of the batch. RxDB retries the first request, with the rows that are current
   * at that time.
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

  /** End all retry delays. */
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

  /** Publish an error. While a Retry-After is in effect, publish only errors from a busy server. */
  #setWaiting(error: unknown): void {
    if (this.#retryAfter.isActive && !isBusy(error)) return;
    this.#retryAfter.record(error);
    this.state$.next({ kind: "waiting", error });
  }

  /**
   * Stop the replication when the disk is full, and restart it later. Otherwise RxDB would skip the rows that it could
   * not store, and lose them.
   */
  async #pauseUntilRoom(full: unknown, epoch: string): Promise<void> {
    if (this.#stopped || this.#generation.signal.aborted) return;
    this.#abortReplications();
    await this.#waitForRoom(full);
    await Promise.allSettled([...this.#replications.values()].map((each) => each.cancel()));
    const { round } = await this.#options.store.load();
    await this.#retryUntilStopped(() => this.#startReplication(epoch, round));
  }

  /**
   * Run `begin`, and repeat it after a failure until it succeeds or the sync is stopped. It fails, for instance, if the
   * disk has no room to store the epoch.
   */
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
   * Stop all requests and retries at once. RxDB's `cancel` is called later, because pending rows cannot be counted
   * after it.
   */
  #abortReplications(): void {
    this.#generation.abort();
    for (const { internalReplicationState } of this.#replications.values()) {
      internalReplicationState?.events.canceled.next(true);
      internalReplicationState?.events.paused.next(true);
    }
  }

  /**
   * Drop all checkpoints and sync from zero: the server was restored, or this device is ahead of the server.
   */
  async #restart(): Promise<void> {
    if (this.#generation.signal.aborted) return; // another collection has already restarted the sync
    this.#abortReplications();
    const next = await this.#fetchEpoch();
    if (this.#stopped) return;
    this.#counts.clear(); // discard old counts, because all rows may have to be pushed again
    await Promise.allSettled(
      [...this.#replications.values()].map((replication) =>
        replication.remove().catch(() => replication.cancel()),
      ),
    );
    await this.#retryUntilStopped(() => this.#startReplication(next, crypto.randomUUID()));
  }

  /**
   * Return the server's epoch, taken from an empty page. Retry until the server responds. Return "" if the sync is
   * stopped first.
   */
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
