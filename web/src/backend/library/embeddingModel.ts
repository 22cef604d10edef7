/**
 * The embedding model on this device. It is downloaded once, after the user has agreed to the size of the download; until
 * then search uses words only. It is started on demand, because it takes 200 MB of memory and seconds of CPU time, and
 * the server embeds while it is reachable.
 */

import {
  BehaviorSubject,
  debounceTime,
  distinctUntilChanged,
  EMPTY,
  filter,
  firstValueFrom,
  fromEvent,
  map,
  merge,
  of,
  switchMap,
  timer,
  type Observable,
} from "rxjs";
import { fetchModel, isDownloaded, open, type Embedder, type Options } from "../../embedder/embedder.ts";
import {
  downloadSize,
  readDownloadChoice,
  storeDownloadChoice,
  type DownloadChoice,
} from "../../embedder/modelFiles.ts";
import { requestJson } from "../../lib/http.ts";
import { channelNames } from "../../lib/locks.ts";
import { isAway } from "../../core/sync/syncStatus.ts";
import type { Manifest } from "../../core/schema/modelManifest.ts";
import { retryDelayMs } from "../../lib/backoff.ts";
import type { AccountContext } from "../account/accountContext.ts";
import type { TabCoordinator } from "../sync/tabCoordinator.ts";

export type ModelState =
  | { kind: "unknown" } // nothing known yet about the current model
  | { kind: "none" } // the server has no model
  | { kind: "offered"; bytes: number; isDeclined: boolean } // not downloaded without the user's consent
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

/** Debounce interval for connection changes: a short interruption neither starts the model nor triggers a download. */
const AWAY_DELAY_MS = 2_000;

/**
 * Time limit for starting the model, whose runtime may load over a hanging network. After it, search uses words only.
 */
const START_TIMEOUT_MS = 10_000;

/** The offer, the download and the embedder of one model. */
class ModelRun {
  /** Controller that is aborted when the server changes its model. */
  readonly stop = new AbortController();
  /** The model that is not downloaded before the user agrees. */
  offered: ModelInfo | undefined;
  download: Promise<boolean | null> | undefined;
  embedder: Promise<Embedder | null> | undefined;
  /** The started embedder. Undefined before the start and after the embedder was discarded. */
  runningEmbedder: Embedder | undefined;
}

export class EmbeddingModel {
  readonly state$ = new BehaviorSubject<ModelState>({ kind: "unknown" });
  readonly #context: AccountContext;
  readonly #otherTabs = new BroadcastChannel(channelNames.modelDownload);
  #current = new ModelRun();
  /** Hash of the model that was requested last. Null if the server had no model, undefined before the first request. */
  #requestedHash: string | null | undefined;
  /** Model hashes of received blocks for which this class has already asked the server for its current model. */
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

  /** Download or offer the model when possible, and start it soon after the server becomes unreachable. */
  start({
    summary$,
    isAway$,
    reconnected$,
  }: Pick<TabCoordinator, "summary$" | "isAway$" | "reconnected$">): void {
    const kind$ = summary$.pipe(
      map(({ kind }) => kind),
      distinctUntilChanged(),
      debounceTime(AWAY_DELAY_MS),
    );
    const mayFetch = () => !isAway(summary$.value.kind) && summary$.value.kind !== "full";
    isAway$
      .pipe(debounceTime(AWAY_DELAY_MS), filter(Boolean))
      .subscribe(() => void this.embedderIfDownloaded());
    const decidedElsewhere$ = fromEvent(this.#otherTabs, "message");
    merge(of(null), reconnected$, kind$, this.#retryAfterFailure(), decidedElsewhere$)
      .pipe(filter(mayFetch))
      .subscribe(() => void this.download());
  }

  /** Emit each time a failed download should be retried, with growing delays. */
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
   * Return the server's current model, or the last known model if the server is unreachable. Return null if there is no
   * model.
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

  /** Store the user's consent, then download the model in the background. */
  async acceptDownload(): Promise<void> {
    await this.#choose("accepted");
    void this.download().then(() => {
      // A call that was already running may have read the choice before it was stored.
      if (this.state$.value.kind === "offered") void this.download();
    });
  }

  /** Keep search on words only. The same model is not offered again, except in the settings. */
  async declineDownload(): Promise<void> {
    await this.#choose("declined");
    const state = this.state$.value;
    if (state.kind === "offered") this.state$.next({ ...state, isDeclined: true });
  }

  async #choose(choice: DownloadChoice): Promise<void> {
    const model = this.#current.offered ?? (await this.fetchManifest());
    if (!model) return;
    await storeDownloadChoice(model, this.#context.server.base, choice);
    this.#otherTabs.postMessage(choice);
  }

  /** Download the model if it is not on this device and the user has agreed. */
  async download(): Promise<void> {
    const run = this.#current;
    run.download ??= this.#runWithModel(run, async (model, options) => {
      await fetchModel(model, options);
      return true;
    });
    if (!(await run.download)) run.download = undefined; // the next call retries
  }

  /**
   * Start the model, downloading it if necessary. Return null if there is no model, if the user has not agreed to the
   * download, or if the download or start failed.
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
   * Start the model if it is on this device, and return the embedder. Return null instead of waiting for a download or
   * a slow start. Callers wait for a normal start, which takes a second or two, because a search by words only could
   * miss passages.
   */
  async embedderIfDownloaded(): Promise<Embedder | null> {
    const { kind } = this.state$.value;
    // If the cache cannot be read, return null, so that search uses words only.
    const look = kind === "unknown" || kind === "offered" || kind === "failed";
    const here = kind === "ready" || (look && (await this.#isDownloaded().catch(() => false)));
    if (!here) return null;
    // The state becomes `loading` if a cached file is damaged and must be downloaded again.
    const downloads$ = this.state$.pipe(filter(({ kind }) => kind === "loading"));
    return firstValueFrom(
      merge(this.embedder(), merge(downloads$, timer(START_TIMEOUT_MS)).pipe(map(() => null))),
    );
  }

  /** Return whether the embedder is no longer in use: the model changed, or it was discarded. */
  isReplaced(embedder: Embedder): boolean {
    return this.#current.runningEmbedder !== embedder;
  }

  /**
   * Discard an embedder that failed, for instance because it ran out of memory. The next call of `embedder` starts
   * another.
   */
  discard(embedder: Embedder, error: unknown): null {
    if (this.isReplaced(embedder)) return null;
    this.#current.runningEmbedder = undefined;
    this.#current.embedder = undefined;
    embedder.close(); // free its memory for the next embedder
    this.#fail(error);
    return null;
  }

  /**
   * Run `work` with the model recorded for the account if it is downloaded, which needs no request. Otherwise ask the
   * server for its current model and use that. Return null if there is no model, if the user has not agreed to its
   * download, or if `work` fails.
   */
  async #runWithModel<T>(
    run: ModelRun,
    work: (model: ModelInfo, options: Options) => Promise<T>,
  ): Promise<T | null> {
    const { signal } = run.stop;
    const { model: known } = this.#context.account;
    if (known) this.#requestedHash = known.hash; // lets `#switchTo` detect a model change
    try {
      const model = known && (await this.#isDownloaded()) ? known : await this.fetchManifest();
      if (signal.aborted) return null;
      this.#requestedHash = model?.hash ?? null;
      if (!model) {
        this.state$.next({ kind: "none" });
        return null;
      }
      const { base } = this.#context.server;
      const choice = (await isDownloaded(model, base)) ? "accepted" : await readDownloadChoice(model, base);
      if (signal.aborted) return null;
      if (choice !== "accepted") {
        run.offered = model;
        const isDeclined = choice === "declined";
        this.state$.next({ kind: "offered", bytes: downloadSize(model), isDeclined });
        return null;
      }
      const since = Date.now();
      const done = await work(model, {
        base,
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

  /** Switch to the server's new model. Every tab gets its hash from the account in the device database. */
  #switchTo(hash: string | undefined): void {
    if (!hash || this.#requestedHash === undefined || hash === this.#requestedHash) return;
    const before = this.#current;
    this.#current = new ModelRun();
    this.state$.next({ kind: "unknown" });
    before.stop.abort();
    void before.embedder?.then((embedder) => embedder?.close());
    void (before.embedder ? this.embedder() : this.download());
  }

  /** Ask the server for its current model if a synced block was embedded with a model other than the requested one. */
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
