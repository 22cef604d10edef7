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
import { fetchModel, isDownloaded, open, type Embedder, type Options } from "../../embedder/embedder.ts";
import { requestJson } from "../../lib/http.ts";
import { isAway } from "../../core/sync/syncStatus.ts";
import type { Manifest } from "../../core/schema/modelManifest.ts";
import { retryDelayMs } from "../../lib/backoff.ts";
import type { AccountContext } from "../account/accountContext.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";

export type ModelState =
  | { kind: "unknown" } // the server was never asked
  | { kind: "none" } // the server has no model
  | { kind: "loading"; loaded: number; total: number; since: number }
  | { kind: "ready"; id: string } // on this device; it runs when it is needed
  | { kind: "failed"; message: string };

export interface ModelInfo extends Manifest {
  id: string;
}

interface Models {
  current: string | null;
  models: ModelInfo[];
}

/** A server that is away for a moment is no reason to start it. */
const AWAY_DELAY_MS = 2_000;

/** What runs it may have to come over a network that hangs: after so long words alone find. */
const START_TIMEOUT_MS = 10_000;

/** What is done with one model. */
class ModelRun {
  /** Ends it when the server has gone over to another model: from then on it says nothing more. */
  readonly stop = new AbortController();
  download: Promise<boolean | null> | undefined;
  embedder: Promise<Embedder | null> | undefined;
  /** That one, when it runs. */
  runningEmbedder: Embedder | undefined;
}

export class EmbeddingModel {
  readonly state$ = new BehaviorSubject<ModelState>({ kind: "unknown" });
  readonly #context: AccountContext;
  #current = new ModelRun();
  /** The model that was wanted last, whether or not it could be had; null: there was none. */
  #requestedHash: string | null | undefined;
  /** Models that blocks name and the server was asked about. */
  readonly #checkedHashes = new Set<string>();

  constructor(context: AccountContext) {
    this.#context = context;
    context.account$
      .pipe(
        map(({ model }) => model?.hash),
        distinctUntilChanged(),
      )
      .subscribe((hash) => this.#switchTo(hash));
    context.database.vectorEmbeddings.$.subscribe(({ documentData }) => this.#checkModel(documentData.model));
  }

  /** From now on the model is on this device, if it can be had, and runs soon after the server is away. */
  start({
    summary$,
    isAway$,
    reconnected$,
  }: Pick<SyncCoordinator, "summary$" | "isAway$" | "reconnected$">): void {
    const kind$ = summary$.pipe(
      map(({ kind }) => kind),
      distinctUntilChanged(),
      debounceTime(AWAY_DELAY_MS),
    );
    const mayFetch = () => !isAway(summary$.value.kind) && summary$.value.kind !== "full";
    isAway$
      .pipe(debounceTime(AWAY_DELAY_MS), filter(Boolean))
      .subscribe(() => void this.embedderIfDownloaded());
    merge(of(null), reconnected$, kind$, this.#retryAfterFailure())
      .pipe(filter(mayFetch))
      .subscribe(() => void this.download());
  }

  /** Each time that it is to be tried again after a failure: ever later, until it is here. */
  #retryAfterFailure(): Observable<unknown> {
    let tries = 0;
    return this.state$.pipe(
      switchMap(({ kind }) => {
        if (kind === "ready") tries = 0;
        return kind === "failed" ? timer(retryDelayMs(tries++)) : EMPTY;
      }),
    );
  }

  /** The server's current model, or the one it had when it was last reached; null if there is none. */
  async fetchManifest(): Promise<ModelInfo | null> {
    const { account, device, server } = this.#context;
    try {
      const { current, models } = await requestJson<Models>(server, "/v1/models");
      const model = models.find(({ hash }) => hash === current) ?? null;
      await device.accounts.update(account.userId, { model });
      return model;
    } catch {
      return (await device.accounts.get(account.userId))?.model ?? null;
    }
  }

  /** Sees to it that the model is on this device. Where it is, that is a look. */
  async download(): Promise<void> {
    const run = this.#current;
    run.download ??= this.#runWithModel(run, async (model, options) => {
      await fetchModel(model, options);
      return true;
    });
    if (!(await run.download)) run.download = undefined; // to be tried again
  }

  /** Starts the model, fetching what of it is not here. Null: there is none, or it could not be had now. */
  embedder(): Promise<Embedder | null> {
    const run = this.#current;
    return (run.embedder ??= this.#runWithModel(run, open).then((embedder) => {
      if (embedder) run.runningEmbedder = embedder;
      else run.embedder = undefined; // to be tried again
      return embedder;
    }));
  }

  /**
   * The embedder if the model is on this device: who asks waits until it runs, and not for a download. It takes a second
   * or two, once; an answer by words alone would say that there is nothing where something is said in other words.
   */
  async embedderIfDownloaded(): Promise<Embedder | null> {
    const { kind } = this.state$.value;
    // A storage that cannot be looked at has no model: words find all the same.
    const look = kind === "unknown" || kind === "failed";
    const here = kind === "ready" || (look && (await this.#isDownloaded().catch(() => false)));
    if (!here) return null;
    const downloads$ = this.state$.pipe(filter(({ kind }) => kind === "loading")); // it was damaged
    return firstValueFrom(
      merge(this.embedder(), merge(downloads$, timer(START_TIMEOUT_MS)).pipe(map(() => null))),
    );
  }

  /** Whether another has taken its place since, or the next will: the server has another model, or it was lost. */
  isReplaced(embedder: Embedder): boolean {
    return this.#current.runningEmbedder !== embedder;
  }

  /** It was running and is gone, as when memory ran out. The next who wants it starts it anew. */
  discard(embedder: Embedder, error: unknown): null {
    if (this.isReplaced(embedder)) return null;
    this.#current.runningEmbedder = undefined;
    this.#current.embedder = undefined;
    embedder.close(); // what is left of it takes the memory that the next needs
    this.#fail(error);
    return null;
  }

  /** What `work` makes of the model: the one that is here, without asking anybody, or the server's. */
  async #runWithModel<T>(
    run: ModelRun,
    work: (model: ModelInfo, options: Options) => Promise<T>,
  ): Promise<T | null> {
    const { signal } = run.stop;
    const { model: known } = this.#context.account;
    if (known) this.#requestedHash = known.hash; // from now on it is heard when the server has another
    try {
      const model = known && (await this.#isDownloaded()) ? known : await this.fetchManifest();
      if (signal.aborted) return null;
      this.#requestedHash = model?.hash ?? null;
      if (!model) {
        this.state$.next({ kind: "none" });
        return null;
      }
      const since = Date.now();
      const done = await work(model, {
        base: this.#context.server.base,
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

  async #isDownloaded(): Promise<boolean> {
    const { model } = this.#context.account;
    return !!model && isDownloaded(model, this.#context.server.base);
  }

  /** Every tab hears which model the server has by now, whichever has asked. */
  #switchTo(hash: string | undefined): void {
    if (!hash || this.#requestedHash === undefined || hash === this.#requestedHash) return;
    const before = this.#current;
    this.#current = new ModelRun();
    this.state$.next({ kind: "unknown" });
    before.stop.abort();
    void before.embedder?.then((embedder) => embedder?.close());
    void (before.embedder ? this.embedder() : this.download());
  }

  /** A block that came by the sync was embedded by a model that is not this one: the server may have changed it. */
  #checkModel(model: string): void {
    if (!model || model === this.#requestedHash || this.#checkedHashes.has(model)) return;
    this.#checkedHashes.add(model);
    void this.fetchManifest();
  }

  #fail(error: unknown): void {
    this.#current.download = undefined; // to be looked for again
    this.state$.next({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}
