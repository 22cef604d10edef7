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
import { Sync, type Known, type SyncState } from "./replication.ts";
import { isOurs } from "./pendingRows.ts";
import { FOREIGN, isBusy, Refusal, TOO_NEW } from "../../lib/http.ts";
import { isFull } from "../../lib/quotaExceeded.ts";
import { isAway, type SyncKind } from "../../core/sync/syncStatus.ts";
import { newId } from "../../core/schema/uuid7.ts";
import { importedId } from "../../core/export/importedTurnId.ts";
import type { Progress } from "../../core/documents/documentList.ts";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { now, type House } from "../account/accountContext.ts";
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
interface Count {
  question: string;
  waiting?: number;
}

type Message = SyncSummary | EmbeddingProgress | Count | "tell" | "again";

const COUNT_MAX = 1000;
const ANSWER_MS = 500;
const LOOK_MS = 50;
const UNKNOWN: SyncSummary = { kind: "starting", waiting: 0, waitingOf: {}, syncedAt: null };

export class SyncCoordinator {
  readonly summary$ = new BehaviorSubject<SyncSummary>(UNKNOWN);
  /** How far the server is with the documents that it embeds, by their ids, as it was last heard of. */
  readonly embedding$ = new BehaviorSubject<Record<string, Progress>>({});
  /** Each time that the server is there again, however short it was away; of all tabs in the one that syncs. */
  readonly back$ = new Subject<void>();
  /** Whether the server is away, once it is known, and whenever that changes. */
  readonly isAway$ = this.summary$.pipe(
    filter(({ kind }) => kind !== "starting"),
    map(({ kind }) => isAway(kind)),
    distinctUntilChanged(),
  );
  readonly #house: House;
  readonly #others: BroadcastChannel;
  readonly #counts$ = new Subject<Count>();
  readonly #leaving = new AbortController();
  /** Rows that were written here since the last count began, of each collection that has any. */
  #written: Record<string, number> = {};
  #sync: Sync | undefined;

  constructor(house: House) {
    this.#house = house;
    this.summary$.next({ ...UNKNOWN, syncedAt: house.account.syncedAt ?? null });
    for (const [name, collection] of Object.entries(house.records.collections)) {
      const ours$ = collection.eventBulks$.pipe(filter((bulk) => isOurs(bulk)));
      ours$.subscribe(({ events }) => this.#write(name, events.length));
    }
    this.#others = new BroadcastChannel(`vademecum-sync-${house.account.userId}`);
    this.#others.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data === "tell") this.#tell();
      else if (data === "again") this.#sync?.reSync();
      else if ("documentId" in data) this.#hear(data);
      else if ("question" in data) void this.#count(data);
      else if (!this.#sync) this.summary$.next(data);
    };
  }

  /** Waits in the background until this tab is the one that syncs. */
  start(): void {
    this.#post("tell");
    const lock = `vademecum-sync-${this.#house.account.userId}`;
    void navigator.locks
      .request(lock, { signal: this.#leaving.signal }, () => this.#lead())
      .catch((error: unknown) => {
        if (!this.#leaving.signal.aborted) throw error;
      });
  }

  async stop(): Promise<void> {
    this.#leaving.abort();
    await this.#sync?.stop();
    this.#others.close();
  }

  /** The sync itself, in the one tab that runs it. */
  get running(): Sync | undefined {
    return this.#sync;
  }

  /** Look at once whether there is something new, instead of at the next try. */
  again(): void {
    if (this.#sync) this.#sync.reSync();
    else this.#post("again");
  }

  /** Resolves once what was written here so far is on the server, or after `ms`: true if it is. */
  async sent(ms: number): Promise<boolean> {
    const until = performance.now() + ms; // a clock that nobody sets
    while (performance.now() < until) {
      // Before anything is known, nothing waits because nothing was looked at.
      if (this.summary$.value.kind !== "starting" && (await this.#waiting()) === 0) return true;
      await pause(LOOK_MS);
    }
    return false;
  }

  async #lead(): Promise<void> {
    const { account, device, records, wire } = this.#house;
    const known = {
      load: async () => (await device.accounts.get(account.userId)) ?? {},
      save: async (changed: Known) => {
        if (changed.forgottenAt) await device.forgetBefore(account.userId, changed.forgottenAt);
        await device.accounts.update(account.userId, { ...changed });
      },
    };
    const isImported = async (turn: Row) =>
      (await device.imported.get(importedId(account.userId, turn))) !== undefined;
    const { collections } = records;
    this.#sync = new Sync({ wire, collections, known, isImported, waitForLeadership: false });
    const rows$ = merge(this.#sync.active$, ...Object.values(records.collections).map((c) => c.$));
    const looks = paced(this.#sync.state$, rows$, () => this.#look().catch(console.error)).subscribe();
    this.#sync.progress$.subscribe((progress) => {
      this.#hear(progress);
      this.#post(progress);
    });
    this.#sync.connected$.subscribe(this.back$);
    void this.#sync.start();
    await new Promise((resolve) => this.#leaving.signal.addEventListener("abort", resolve));
    looks.unsubscribe();
  }

  /** It waits from the moment that it is written, and not only once it is counted. */
  #write(name: string, rows: number): void {
    this.#written[name] ??= rows;
    if (name in this.summary$.value.waitingOf) return;
    const waitingOf = { ...this.summary$.value.waitingOf, [name]: rows };
    this.summary$.next({ ...this.summary$.value, waiting: sum(waitingOf), waitingOf });
  }

  async #look(): Promise<void> {
    const kind = kindOf(this.#sync!.state$.value);
    this.#written = {};
    const counted = await this.#sync!.waiting(COUNT_MAX).catch(console.error);
    if (counted && kind === "live" && !this.#sync!.hasCounted) return; // it is looked again when the rest begins
    // What could not be counted is told as it was last: the state is told all the same.
    const waitingOf = () => ({ ...this.#written, ...(counted ?? this.summary$.value.waitingOf) });
    let { syncedAt } = this.summary$.value;
    if (counted && kind === "live" && sum(waitingOf()) === 0 && !this.#sync!.active$.value) {
      syncedAt = now();
      const { account, device } = this.#house;
      await device.accounts.update(account.userId, { syncedAt }).catch(console.error); // there may be no room for it
    }
    this.summary$.next({ kind, waiting: sum(waitingOf()), waitingOf: waitingOf(), syncedAt });
    this.#tell();
  }

  #hear({ documentId, done, of }: EmbeddingProgress): void {
    this.embedding$.next({ ...this.embedding$.value, [documentId]: { done, of } });
  }

  #tell(): void {
    if (this.#sync) this.#post(this.summary$.value);
  }

  /** To the other tabs. Who has left has nothing more to say to them. */
  #post(message: Message): void {
    if (!this.#leaving.signal.aborted) this.#others.postMessage(message);
  }

  /** The tab that syncs is asked: what it told last may be older than what was written here. */
  async #waiting(): Promise<number> {
    if (this.#sync) {
      const counted = await this.#sync.waiting(COUNT_MAX);
      return this.#sync.hasCounted ? sum(counted) : Infinity;
    }
    const question = newId();
    const answer$ = this.#counts$.pipe(filter((count) => count.question === question));
    const answer = firstValueFrom(answer$.pipe(timeout(ANSWER_MS)));
    this.#post({ question });
    return (await answer.catch(() => undefined))?.waiting ?? Infinity; // no tab syncs at this moment
  }

  async #count(count: Count): Promise<void> {
    if (count.waiting !== undefined) this.#counts$.next(count);
    else if (this.#sync) this.#post({ ...count, waiting: await this.#waiting() });
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
