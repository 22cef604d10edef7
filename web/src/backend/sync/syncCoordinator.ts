/**
 * Keeps this account in step with the server, from one tab: whoever holds the lock syncs, and tells the others.
 *
 * What it says of itself comes from the replication alone. A browser calls itself online when the server is gone.
 */

import {
  BehaviorSubject,
  distinctUntilChanged,
  filter,
  firstValueFrom,
  map,
  merge,
  Subject,
  timeout,
} from "rxjs";
import { pause } from "../../lib/sleep.ts";
import type { EmbeddingProgress } from "./stream.ts";
import { SyncEngine, type ServerState, type SyncState } from "./replication.ts";
import { isLocalWrite } from "./pendingRows.ts";
import { FOREIGN, isBusy, Refusal, TOO_NEW } from "../../lib/http.ts";
import { isFull } from "../../lib/quotaExceeded.ts";
import { isAway, type SyncKind } from "../../core/sync/syncStatus.ts";
import { newId } from "../../core/schema/uuid7.ts";
import { importedId } from "../../core/export/importedTurnId.ts";
import type { Progress } from "../../core/documents/documentList.ts";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { now, type AccountContext } from "../account/accountContext.ts";
import { paced } from "../../lib/throttle.ts";

export interface SyncSummary {
  kind: SyncKind;
  /** Rows written here that the server has not answered for; as many as COUNT_MAX are counted. */
  waiting: number;
  /** The same, of each collection that has any. */
  waitingOf: Record<string, number>;
  syncedAt: string | null;
}

/** One tab asks how much waits, and the one that syncs answers under the same name. */
interface CountMessage {
  requestId: string;
  waiting?: number;
}

type Message = SyncSummary | EmbeddingProgress | CountMessage | "tell" | "again";

const MAX_COUNT = 1000;
const COUNT_TIMEOUT_MS = 500;
const POLL_MS = 50;
const INITIAL_SUMMARY: SyncSummary = { kind: "starting", waiting: 0, waitingOf: {}, syncedAt: null };

export class SyncCoordinator {
  readonly summary$ = new BehaviorSubject<SyncSummary>(INITIAL_SUMMARY);
  /** How far the server is with the documents that it embeds, by their ids, as it was last heard of. */
  readonly embeddingProgress$ = new BehaviorSubject<Record<string, Progress>>({});
  /** Each time that the server is there again, however short it was away; of all tabs in the one that syncs. */
  readonly reconnected$ = new Subject<void>();
  /** Whether the server is away, once it is known, and whenever that changes. */
  readonly isAway$ = this.summary$.pipe(
    filter(({ kind }) => kind !== "starting"),
    map(({ kind }) => isAway(kind)),
    distinctUntilChanged(),
  );
  readonly #context: AccountContext;
  readonly #channel: BroadcastChannel;
  readonly #counts$ = new Subject<CountMessage>();
  readonly #stopped = new AbortController();
  /** Rows that were written here since the last count began, of each collection that has any. */
  #newlyWritten: Record<string, number> = {};
  #engine: SyncEngine | undefined;

  constructor(context: AccountContext) {
    this.#context = context;
    this.summary$.next({ ...INITIAL_SUMMARY, syncedAt: context.account.syncedAt ?? null });
    for (const [name, collection] of Object.entries(context.database.collections)) {
      const ours$ = collection.eventBulks$.pipe(filter((bulk) => isLocalWrite(bulk)));
      ours$.subscribe(({ events }) => this.#countWrite(name, events.length));
    }
    this.#channel = new BroadcastChannel(`vademecum-sync-${context.account.userId}`);
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data === "tell") this.#broadcastSummary();
      else if (data === "again") this.#engine?.reSync();
      else if ("documentId" in data) this.#recordProgress(data);
      else if ("requestId" in data) void this.#handleCount(data);
      else if (!this.#engine) this.summary$.next(data);
    };
  }

  /** Waits in the background until this tab is the one that syncs. */
  start(): void {
    this.#broadcast("tell");
    const lock = `vademecum-sync-${this.#context.account.userId}`;
    void navigator.locks
      .request(lock, { signal: this.#stopped.signal }, () => this.#runAsLeader())
      .catch((error: unknown) => {
        if (!this.#stopped.signal.aborted) throw error;
      });
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#engine?.stop();
    this.#channel.close();
  }

  /** The sync itself, in the one tab that runs it. */
  get engine(): SyncEngine | undefined {
    return this.#engine;
  }

  /** Look at once whether there is something new, instead of at the next try. */
  syncNow(): void {
    if (this.#engine) this.#engine.reSync();
    else this.#broadcast("again");
  }

  /** Resolves once what was written here so far is on the server, or after `ms`: true if it is. */
  async waitUntilPushed(ms: number): Promise<boolean> {
    const until = performance.now() + ms; // a clock that nobody sets
    while (performance.now() < until) {
      // Before anything is known, nothing waits because nothing was looked at.
      if (this.summary$.value.kind !== "starting" && (await this.#countWaiting()) === 0) return true;
      await pause(POLL_MS);
    }
    return false;
  }

  async #runAsLeader(): Promise<void> {
    const { account, device, database: records, server: wire } = this.#context;
    const stateStore = {
      load: async () => (await device.accounts.get(account.userId)) ?? {},
      save: async (changed: ServerState) => {
        if (changed.forgottenAt) await device.forgetBefore(account.userId, changed.forgottenAt);
        await device.accounts.update(account.userId, { ...changed });
      },
    };
    const isImported = async (turn: Row) =>
      (await device.imported.get(importedId(account.userId, turn))) !== undefined;
    const { collections } = records;
    this.#engine = new SyncEngine({
      server: wire,
      collections,
      stateStore,
      isImported,
      waitForLeadership: false,
    });
    const rows$ = merge(this.#engine.active$, ...Object.values(records.collections).map((c) => c.$));
    const updates = paced(this.#engine.state$, rows$, () =>
      this.#updateSummary().catch(console.error),
    ).subscribe();
    this.#engine.progress$.subscribe((progress) => {
      this.#recordProgress(progress);
      this.#broadcast(progress);
    });
    this.#engine.connected$.subscribe(this.reconnected$);
    void this.#engine.start();
    await new Promise((resolve) => this.#stopped.signal.addEventListener("abort", resolve));
    updates.unsubscribe();
  }

  /** It waits from the moment that it is written, and not only once it is counted. */
  #countWrite(name: string, rows: number): void {
    this.#newlyWritten[name] ??= rows;
    if (name in this.summary$.value.waitingOf) return;
    const waitingOf = { ...this.summary$.value.waitingOf, [name]: rows };
    this.summary$.next({ ...this.summary$.value, waiting: sum(waitingOf), waitingOf });
  }

  async #updateSummary(): Promise<void> {
    const kind = kindOf(this.#engine!.state$.value);
    this.#newlyWritten = {};
    const counted = await this.#engine!.countWaiting(MAX_COUNT).catch(console.error);
    if (counted && kind === "live" && !this.#engine!.hasCounted) return; // it is looked again when the rest begins
    // What could not be counted is told as it was last: the state is told all the same.
    const waitingOf = () => ({ ...this.#newlyWritten, ...(counted ?? this.summary$.value.waitingOf) });
    let { syncedAt } = this.summary$.value;
    if (counted && kind === "live" && sum(waitingOf()) === 0 && !this.#engine!.active$.value) {
      syncedAt = now();
      const { account, device } = this.#context;
      await device.accounts.update(account.userId, { syncedAt }).catch(console.error); // there may be no room for it
    }
    this.summary$.next({ kind, waiting: sum(waitingOf()), waitingOf: waitingOf(), syncedAt });
    this.#broadcastSummary();
  }

  #recordProgress({ documentId, done, of }: EmbeddingProgress): void {
    this.embeddingProgress$.next({ ...this.embeddingProgress$.value, [documentId]: { done, of } });
  }

  #broadcastSummary(): void {
    if (this.#engine) this.#broadcast(this.summary$.value);
  }

  /** To the other tabs. Who has left has nothing more to say to them. */
  #broadcast(message: Message): void {
    if (!this.#stopped.signal.aborted) this.#channel.postMessage(message);
  }

  /** The tab that syncs is asked: what it told last may be older than what was written here. */
  async #countWaiting(): Promise<number> {
    if (this.#engine) {
      const counted = await this.#engine.countWaiting(MAX_COUNT);
      return this.#engine.hasCounted ? sum(counted) : Infinity;
    }
    const question = newId();
    const answer$ = this.#counts$.pipe(filter((count) => count.requestId === question));
    const answer = firstValueFrom(answer$.pipe(timeout(COUNT_TIMEOUT_MS)));
    this.#broadcast({ requestId: question });
    return (await answer.catch(() => undefined))?.waiting ?? Infinity; // no tab syncs at this moment
  }

  async #handleCount(count: CountMessage): Promise<void> {
    if (count.waiting !== undefined) this.#counts$.next(count);
    else if (this.#engine) this.#broadcast({ ...count, waiting: await this.#countWaiting() });
  }
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}

export function kindOf(state: SyncState): SyncKind {
  if (!("error" in state)) return state.kind;
  const { error } = state;
  if (!(error instanceof Refusal)) return isFull(error) ? "full" : "offline";
  if (error.code === "OUTDATED") return "outdated";
  if (error.code === TOO_NEW) return "behind";
  if (error.status === 401) return "signed-out";
  if (isBusy(error)) return "busy";
  return error.status < 500 && error.code !== FOREIGN ? "denied" : "offline";
}
