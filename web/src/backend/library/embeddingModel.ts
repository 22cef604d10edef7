/**
 * The model on this device: fetched once, then here without a network. Until it is here, words alone find. It runs only
 * from when it is needed: it takes 200 MB of memory and seconds of a processor, and while the server answers, that
 * embeds and searches.
 */

import {
  BehaviorSubject,
  debounceTime,
  distinctUntilChanged,
  EMPTY,
  filter,
  firstValueFrom,
  map,
  merge,
  of,
  switchMap,
  timer,
  type Observable,
} from "rxjs";
import { fetchModel, isHere, open, type Embedder, type Options } from "../../embedder/embedder.ts";
import { request } from "../../lib/http.ts";
import { isAway } from "../../core/sync/syncStatus.ts";
import type { Manifest } from "../../core/schema/modelManifest.ts";
import { retryMs } from "../../lib/backoff/retryDelay.ts";
import type { House } from "../account/accountContext.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";

export type ModelState =
  | { kind: "unknown" } // the server was never asked
  | { kind: "none" } // the server has no model
  | { kind: "loading"; loaded: number; total: number; since: number }
  | { kind: "ready"; id: string } // on this device; it runs when it is needed
  | { kind: "failed"; message: string };

export interface Listed extends Manifest {
  id: string;
}

interface Models {
  current: string | null;
  models: Listed[];
}

/** A server that is away for a moment is no reason to start it. */
const AWAY_MS = 2_000;

/** What runs it may have to come over a network that hangs: after so long words alone find. */
const START_MS = 10_000;

/** What is done with one model. */
class Run {
  /** Ends it when the server has gone over to another model: from then on it says nothing more. */
  readonly stop = new AbortController();
  fetched: Promise<boolean | null> | undefined;
  embedder: Promise<Embedder | null> | undefined;
  /** That one, when it runs. */
  running: Embedder | undefined;
}

export class Embedding {
  readonly state$ = new BehaviorSubject<ModelState>({ kind: "unknown" });
  readonly #house: House;
  #run = new Run();
  /** The model that was wanted last, whether or not it could be had; null: there was none. */
  #tried: string | null | undefined;
  /** Models that blocks name and the server was asked about. */
  readonly #heardOf = new Set<string>();

  constructor(house: House) {
    this.#house = house;
    house.account$
      .pipe(
        map(({ model }) => model?.hash),
        distinctUntilChanged(),
      )
      .subscribe((hash) => this.#goOverTo(hash));
    house.records.vectorEmbeddings.$.subscribe(({ documentData }) => this.#hearOf(documentData.model));
  }

  /** From now on the model is on this device, if it can be had, and runs soon after the server is away. */
  start({ summary$, isAway$, back$ }: Pick<SyncCoordinator, "summary$" | "isAway$" | "back$">): void {
    const kind$ = summary$.pipe(
      map(({ kind }) => kind),
      distinctUntilChanged(),
      debounceTime(AWAY_MS),
    );
    const mayFetch = () => !isAway(summary$.value.kind) && summary$.value.kind !== "full";
    isAway$.pipe(debounceTime(AWAY_MS), filter(Boolean)).subscribe(() => void this.ifHere());
    merge(of(null), back$, kind$, this.#failedAWhileAgo())
      .pipe(filter(mayFetch))
      .subscribe(() => void this.fetch());
  }

  /** Each time that it is to be tried again after a failure: ever later, until it is here. */
  #failedAWhileAgo(): Observable<unknown> {
    let tries = 0;
    return this.state$.pipe(
      switchMap(({ kind }) => {
        if (kind === "ready") tries = 0;
        return kind === "failed" ? timer(retryMs(tries++)) : EMPTY;
      }),
    );
  }

  /** The server's current model, or the one it had when it was last reached; null if there is none. */
  async manifest(): Promise<Listed | null> {
    const { account, device, wire } = this.#house;
    try {
      const { current, models } = await request<Models>(wire, "/v1/models");
      const model = models.find(({ hash }) => hash === current) ?? null;
      await device.accounts.update(account.userId, { model });
      return model;
    } catch {
      return (await device.accounts.get(account.userId))?.model ?? null;
    }
  }

  /** Sees to it that the model is on this device. Where it is, that is a look. */
  async fetch(): Promise<void> {
    const run = this.#run;
    run.fetched ??= this.#with(run, async (model, options) => {
      await fetchModel(model, options);
      return true;
    });
    if (!(await run.fetched)) run.fetched = undefined; // to be tried again
  }

  /** Starts the model, fetching what of it is not here. Null: there is none, or it could not be had now. */
  embedder(): Promise<Embedder | null> {
    const run = this.#run;
    return (run.embedder ??= this.#with(run, open).then((embedder) => {
      if (embedder) run.running = embedder;
      else run.embedder = undefined; // to be tried again
      return embedder;
    }));
  }

  /**
   * The embedder if the model is on this device: who asks waits until it runs, and not for a download. It takes a second
   * or two, once; an answer by words alone would say that there is nothing where something is said in other words.
   */
  async ifHere(): Promise<Embedder | null> {
    const { kind } = this.state$.value;
    // A storage that cannot be looked at has no model: words find all the same.
    const look = kind === "unknown" || kind === "failed";
    const here = kind === "ready" || (look && (await this.#isHere().catch(() => false)));
    if (!here) return null;
    const downloads$ = this.state$.pipe(filter(({ kind }) => kind === "loading")); // it was damaged
    return firstValueFrom(merge(this.embedder(), merge(downloads$, timer(START_MS)).pipe(map(() => null))));
  }

  /** Whether another has taken its place since, or the next will: the server has another model, or it was lost. */
  isReplaced(embedder: Embedder): boolean {
    return this.#run.running !== embedder;
  }

  /** It was running and is gone, as when memory ran out. The next who wants it starts it anew. */
  lost(embedder: Embedder, error: unknown): null {
    if (this.isReplaced(embedder)) return null;
    this.#run.running = undefined;
    this.#run.embedder = undefined;
    embedder.close(); // what is left of it takes the memory that the next needs
    this.#fail(error);
    return null;
  }

  /** What `work` makes of the model: the one that is here, without asking anybody, or the server's. */
  async #with<T>(run: Run, work: (model: Listed, options: Options) => Promise<T>): Promise<T | null> {
    const { signal } = run.stop;
    const { model: known } = this.#house.account;
    if (known) this.#tried = known.hash; // from now on it is heard when the server has another
    try {
      const model = known && (await this.#isHere()) ? known : await this.manifest();
      if (signal.aborted) return null;
      this.#tried = model?.hash ?? null;
      if (!model) {
        this.state$.next({ kind: "none" });
        return null;
      }
      const since = Date.now();
      const done = await work(model, {
        base: this.#house.wire.base,
        signal,
        onProgress: (progress) => this.state$.next({ kind: "loading", since, ...progress }),
      });
      if (!signal.aborted) this.state$.next({ kind: "ready", id: model.id });
      return done;
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
      return null;
    }
  }

  async #isHere(): Promise<boolean> {
    const { model } = this.#house.account;
    return !!model && isHere(model, this.#house.wire.base);
  }

  /** Every tab hears which model the server has by now, whichever has asked. */
  #goOverTo(hash: string | undefined): void {
    if (!hash || this.#tried === undefined || hash === this.#tried) return;
    const before = this.#run;
    this.#run = new Run();
    this.state$.next({ kind: "unknown" });
    before.stop.abort();
    void before.embedder?.then((embedder) => embedder?.close());
    void (before.embedder ? this.embedder() : this.fetch());
  }

  /** A block that came by the sync was embedded by a model that is not this one: the server may have changed it. */
  #hearOf(model: string): void {
    if (!model || model === this.#tried || this.#heardOf.has(model)) return;
    this.#heardOf.add(model);
    void this.manifest();
  }

  #fail(error: unknown): void {
    this.#run.fetched = undefined; // to be looked for again
    this.state$.next({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}
