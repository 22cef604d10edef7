/**
 * The embedding model on this device. It is downloaded once; until then search uses words only. It is started on demand,
 * because it takes 200 MB of memory and seconds of CPU time, and the server embeds while it is reachable.
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
  | { kind: "unknown" } // not known yet
  | { kind: "none" } // the server has no model
  | { kind: "loading"; loaded: number; total: number; since: number }
  | { kind: "ready"; id: string } // downloaded; started on demand
  | { kind: "failed"; message: string };

export interface ModelInfo extends Manifest {
  id: string;
}

interface Models {
  current: string | null;
  models: ModelInfo[];
}

/** Time without the server before the model starts, so that a short interruption does not start it. */
const AWAY_DELAY_MS = 2_000;

/**
 * Time limit for starting the model, whose runtime may load over a hanging network. Then search uses words
 * only.
 */
const START_TIMEOUT_MS = 10_000;

/** The download and the embedder of one model. */
class ModelRun {
  /** Controller that is aborted when the server changes its model. */
  readonly stop = new AbortController();
  download: Promise<boolean | null> | undefined;
  embedder: Promise<Embedder | null> | undefined;
  /** The started embedder. Undefined before it has started. */
  runningEmbedder: Embedder | undefined;
}

export class EmbeddingModel {
  readonly state$ = new BehaviorSubject<ModelState>({ kind: "unknown" });
  readonly #context: AccountContext;
  #current = new ModelRun();
  /** Hash of the last requested model. Null if the server had none. */
  #requestedHash: string | null | undefined;
  /** Hashes of models in received blocks for which the server's current model was already requested. */
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

  /** Download the model when possible, and start it soon after the server becomes unreachable. */
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

  /** Emit when to retry a failed download, with growing delays. */
  #retryAfterFailure(): Observable<unknown> {
    let tries = 0;
    return this.state$.pipe(
      switchMap(({ kind }) => {
        if (kind === "ready") tries = 0;
        return kind === "failed" ? timer(retryDelayMs(tries++)) : EMPTY;
      }),
    );
  }

  /**
   * Return the server's current model, or the last known model if the server is unreachable. Null: no model.
   */
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

  /** Download the model if it is not on this device. */
  async download(): Promise<void> {
    const run = this.#current;
    run.download ??= this.#runWithModel(run, async (model, options) => {
      await fetchModel(model, options);
      return true;
    });
    if (!(await run.download)) run.download = undefined; // the next call retries
  }

  /**
   * Start the model, downloading it if necessary. Return null if there is no model or the download failed.
   */
  embedder(): Promise<Embedder | null> {
    const run = this.#current;
    return (run.embedder ??= this.#runWithModel(run, open).then((embedder) => {
      if (embedder) run.runningEmbedder = embedder;
      else run.embedder = undefined; // the next call retries
      return embedder;
    }));
  }

  /**
   * Return the started embedder if the model is on this device, without waiting for a download. The first
   * start takes a second or two, which is worth it, because a search by words only could miss passages.
   */
  async embedderIfDownloaded(): Promise<Embedder | null> {
    const { kind } = this.state$.value;
    // If the cache cannot be read, search by words.
    const look = kind === "unknown" || kind === "failed";
    const here = kind === "ready" || (look && (await this.#isDownloaded().catch(() => false)));
    if (!here) return null;
    const downloads$ = this.state$.pipe(filter(({ kind }) => kind === "loading")); // the cached files were damaged
    return firstValueFrom(
      merge(this.embedder(), merge(downloads$, timer(START_TIMEOUT_MS)).pipe(map(() => null))),
    );
  }

  /** Return whether the embedder is no longer in use: the model changed, or it was discarded. */
  isReplaced(embedder: Embedder): boolean {
    return this.#current.runningEmbedder !== embedder;
  }

  /** Discard an embedder that failed, for instance out of memory. The next call starts another. */
  discard(embedder: Embedder, error: unknown): null {
    if (this.isReplaced(embedder)) return null;
    this.#current.runningEmbedder = undefined;
    this.#current.embedder = undefined;
    embedder.close(); // free its memory for the next embedder
    this.#fail(error);
    return null;
  }

  /** Run `work` with the model on this device, without a request, or else with the server's. */
  async #runWithModel<T>(
    run: ModelRun,
    work: (model: ModelInfo, options: Options) => Promise<T>,
  ): Promise<T | null> {
    const { signal } = run.stop;
    const { model: known } = this.#context.account;
    if (known) this.#requestedHash = known.hash; // needed to detect a model change
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

  /** Switch to the server's new model. All tabs get the hash from the account. */
  #switchTo(hash: string | undefined): void {
    if (!hash || this.#requestedHash === undefined || hash === this.#requestedHash) return;
    const before = this.#current;
    this.#current = new ModelRun();
    this.state$.next({ kind: "unknown" });
    before.stop.abort();
    void before.embedder?.then((embedder) => embedder?.close());
    void (before.embedder ? this.embedder() : this.download());
  }

  /** Check whether the server changed its model, after a synced block was embedded with another model. */
  #checkModel(model: string): void {
    if (!model || model === this.#requestedHash || this.#checkedHashes.has(model)) return;
    this.#checkedHashes.add(model);
    void this.fetchManifest();
  }

  #fail(error: unknown): void {
    this.#current.download = undefined; // the next call retries
    this.state$.next({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}
