/**
 * Sync the account from one tab: the tab that holds the lock syncs and publishes its status to the other tabs.
 *
 * The status comes only from the replication, because `navigator.onLine` can be true while the server is unreachable.
 */

import {
  BehaviorSubject,
  distinctUntilChanged,
  filter,
  firstValueFrom,
  from,
  map,
  merge,
  mergeMap,
  Subject,
  takeUntil,
  timer,
  type Observable,
} from "rxjs";
import type { EmbeddingProgress } from "./stream.ts";
import { Replicator, type ServerKnowledge, type SyncState } from "./replication.ts";
import { isLocal } from "./pendingRows.ts";
import { UNKNOWN_CODE, isBusy, ApiError, TOO_NEW } from "../../lib/http.ts";
import { isQuotaExceeded } from "../../lib/quotaExceeded.ts";
import { isAway, type SyncKind } from "../../core/sync/syncStatus.ts";
import { channelNames, lockNames } from "../../lib/locks.ts";
import { newId } from "../../core/schema/uuid7.ts";
import { importedTurnId } from "../../core/export/importedTurnId.ts";
import type { Progress } from "../../core/documents/documentList.ts";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { now, type AccountContext } from "../account/accountContext.ts";
import { throttledUpdates } from "../../lib/backoff.ts";

export interface SyncSummary {
  kind: SyncKind;
  /** Number of pending rows, counted up to MAX_COUNT. */
  waiting: number;
  /** Number of pending rows by collection. */
  waitingOf: Record<string, number>;
  syncedAt: string | null;
}

/** A request for the number of pending rows, and the reply of the tab that syncs, with the same id. */
interface Count {
  question: string;
  waiting?: number;
}

type Message = SyncSummary | EmbeddingProgress | Count | "tell" | "again";

const MAX_COUNT = 1000;
const INITIAL: SyncSummary = { kind: "starting", waiting: 0, waitingOf: {}, syncedAt: null };

export class TabCoordinator {
  readonly summary$ = new BehaviorSubject<SyncSummary>(INITIAL);
  /** Maps the ids of documents that the server embeds to their last known progress. */
  readonly serverEmbedding$ = new BehaviorSubject<Record<string, Progress>>({});
  /** Emits each time the connection is restored, only in the tab that syncs. */
  readonly reconnected$ = new Subject<void>();
  /** Emits whether the server is unreachable, as soon as that is known. */
  readonly isAway$ = this.summary$.pipe(
    filter(({ kind }) => kind !== "starting"),
    map(({ kind }) => isAway(kind)),
    distinctUntilChanged(),
  );
  readonly #context: AccountContext;
  readonly #channel: BroadcastChannel;
  readonly #counts$ = new Subject<Count>();
  readonly #stopping = new AbortController();
  /** Number of local writes by collection since the last count began. */
  #writtenSinceCount: Record<string, number> = {};
  #replicator: Replicator | undefined;

  constructor(context: AccountContext) {
    this.#context = context;
    this.summary$.next({ ...INITIAL, syncedAt: context.account.syncedAt ?? null });
    for (const [name, collection] of Object.entries(context.database.collections)) {
      const ours$ = collection.eventBulks$.pipe(filter((bulk) => isLocal(bulk)));
      ours$.subscribe(({ events }) => this.#countWrite(name, events.length));
    }
    this.#channel = new BroadcastChannel(channelNames.sync(context.account.userId));
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data === "tell") this.#publishSummary();
      else if (data === "again") this.#replicator?.syncNow();
      else if ("documentId" in data) this.#setEmbeddingProgress(data);
      else if ("question" in data) void this.#answerCount(data);
      else if (!this.#replicator) this.summary$.next(data);
    };
  }

  /** Start syncing as soon as this tab gets the lock. */
  start(): void {
    this.#post("tell");
    const lock = lockNames.sync(this.#context.account.userId);
    void navigator.locks
      .request(lock, { signal: this.#stopping.signal }, () => this.#runAsLeader())
      .catch((error: unknown) => {
        if (!this.#stopping.signal.aborted) throw error;
      });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#replicator?.stop();
    this.#channel.close();
  }

  /** The replicator. Undefined in tabs that do not sync. */
  get replicator(): Replicator | undefined {
    return this.#replicator;
  }

  /** Sync now instead of at the next retry. */
  syncNow(): void {
    if (this.#replicator) this.#replicator.syncNow();
    else this.#post("again");
  }

  /** Wait up to `ms` until all local writes are pushed. Return whether all were pushed. */
  waitUntilPushed(ms: number): Promise<boolean> {
    const pushed$ = this.summary$.pipe(
      // Before the first count, a result of zero does not mean that all rows were pushed.
      filter(({ kind }) => kind !== "starting"),
      mergeMap(() => this.#countPending()), // `switchMap` would cancel each count when summaries are frequent
      map((pending) => pending === 0),
      filter(Boolean),
      takeUntil(timer(ms)),
    );
    return firstValueFrom(pushed$, { defaultValue: false });
  }

  async #runAsLeader(): Promise<void> {
    const { account, device, database, server } = this.#context;
    const known = {
      load: async () => (await device.accounts.get(account.userId)) ?? {},
      save: async (changed: ServerKnowledge) => {
        if (changed.forgottenAt) await device.deleteBefore(account.userId, changed.forgottenAt);
        await device.accounts.update(account.userId, { ...changed });
      },
    };
    const isImported = async (turn: Row) =>
      (await device.imported.get(importedTurnId(account.userId, turn))) !== undefined;
    const { collections } = database;
    this.#replicator = new Replicator({
      server,
      collections,
      store: known,
      isImported,
      waitForLeadership: false,
    });
    const rows$ = merge(this.#replicator.active$, ...Object.values(database.collections).map((c) => c.$));
    const looks = throttledUpdates(this.#replicator.state$, rows$, () =>
      this.#updateSummary().catch(console.error),
    ).subscribe();
    this.#replicator.progress$.subscribe((progress) => {
      this.#setEmbeddingProgress(progress);
      this.#post(progress);
    });
    this.#replicator.connected$.subscribe(this.reconnected$);
    void this.#replicator.start();
    await new Promise((resolve) => this.#stopping.signal.addEventListener("abort", resolve));
    looks.unsubscribe();
  }

  /** Add a write to the published count at once, without waiting for the next full count. */
  #countWrite(name: string, rows: number): void {
    this.#writtenSinceCount[name] ??= rows;
    if (name in this.summary$.value.waitingOf) return;
    const waitingOf = { ...this.summary$.value.waitingOf, [name]: rows };
    this.summary$.next({ ...this.summary$.value, waiting: sum(waitingOf), waitingOf });
  }

  async #updateSummary(): Promise<void> {
    const kind = kindOf(this.#replicator!.state$.value);
    this.#writtenSinceCount = {};
    const counted = await this.#replicator!.countPending(MAX_COUNT).catch(console.error);
    // Do not publish an incomplete count. Rows are counted again when the other collections start.
    if (counted && kind === "live" && !this.#replicator!.hasCounted) return;
    // If counting failed, publish the state with the last counts.
    const waitingOf = () => ({ ...this.#writtenSinceCount, ...(counted ?? this.summary$.value.waitingOf) });
    let { syncedAt } = this.summary$.value;
    if (counted && kind === "live" && sum(waitingOf()) === 0 && !this.#replicator!.active$.value) {
      syncedAt = now();
      const { account, device } = this.#context;
      // Publish the status even if its time cannot be stored, as on a full disk.
      await device.accounts.update(account.userId, { syncedAt }).catch(console.error);
    }
    this.summary$.next({ kind, waiting: sum(waitingOf()), waitingOf: waitingOf(), syncedAt });
    this.#publishSummary();
  }

  #setEmbeddingProgress({ documentId, done, of }: EmbeddingProgress): void {
    this.serverEmbedding$.next({ ...this.serverEmbedding$.value, [documentId]: { done, of } });
  }

  #publishSummary(): void {
    if (this.#replicator) this.#post(this.summary$.value);
  }

  /** Send a message to the other tabs unless this coordinator is stopping. */
  #post(message: Message): void {
    if (!this.#stopping.signal.aborted) this.#channel.postMessage(message);
  }

  /**
   * Count the pending rows. A tab that does not sync asks the tab that syncs, because the last published summary may
   * not include new writes.
   */
  #countPending(): Observable<number> {
    if (this.#replicator) return from(this.#countOwn(this.#replicator));
    const question = newId();
    this.#post({ question });
    return this.#counts$.pipe(
      filter((count) => count.question === question),
      map(({ waiting }) => waiting!),
    );
  }

  /** Count the pending rows in the tab that syncs. Return Infinity if a collection is not counted yet. */
  async #countOwn(replicator: Replicator): Promise<number> {
    const counted = await replicator.countPending(MAX_COUNT);
    return replicator.hasCounted ? sum(counted) : Infinity;
  }

  async #answerCount(count: Count): Promise<void> {
    if (count.waiting !== undefined) this.#counts$.next(count);
    else if (this.#replicator) this.#post({ ...count, waiting: await this.#countOwn(this.#replicator) });
  }
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}

export function kindOf(state: SyncState): SyncKind {
  if (!("error" in state)) return state.kind;
  const { error } = state;
  if (!(error instanceof ApiError)) return isQuotaExceeded(error) ? "full" : "offline";
  if (error.code === "OUTDATED") return "outdated";
  if (error.code === TOO_NEW) return "behind";
  if (error.status === 401) return "signed-out";
  if (isBusy(error)) return "busy";
  return error.status < 500 && error.code !== UNKNOWN_CODE ? "denied" : "offline";
}
