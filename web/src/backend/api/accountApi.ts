/**
 * The worker's API for the page while an account is open. It connects the services of the account; the page only
 * renders the data that it requests here.
 *
 * The page gets plain data. Rows have the same format as in requests to the server.
 */

import { proxy, type ProxyMarked } from "comlink";
import { distinctUntilChanged, map, pairwise, startWith, type Observable } from "rxjs";
import type { DeviceAccount, ConflictLoser } from "../../storage/deviceDatabase.ts";
import { ANY_ACCOUNT } from "../../lib/http.ts";
import { bindContext, type Bound } from "./bindContext.ts";
import { proxySubscription, type Unsubscribe } from "./proxySubscription.ts";
import { lazy } from "../../lib/lazy.ts";
import { lazyApi } from "./lazyApi.ts";
import { diffDrafts, type DraftPatches } from "../../core/chat/draftPatches.ts";
import type { Progress } from "../../core/documents/documentList.ts";
import type { Collections, VectorEmbeddingDoc } from "../../core/schema/rows.ts";
import * as accounts from "../account/accounts.ts";
import { AnswerService, type AssistantState, type AnswerDraft } from "../chat/answerQuestion.ts";
import { deleteDocuments, deleteProject, deleteRow, deleteSession } from "../deletion/deletion.ts";
import {
  borrow,
  chunks$,
  returnDocument,
  includeDocument,
  mentionedDocuments,
} from "../library/documents.ts";
import { isMostlyForeign } from "../library/libraryLanguage.ts";
import { EmbeddingModel, type ModelState } from "../library/embeddingModel.ts";
import { addFact, changeFact } from "../memory/facts.ts";
import type { ErasureReceipt } from "../account/forgetEverything.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { hasRoomForRewrite, DeletedTextErasure } from "../account/deletedTextErasure.ts";
import { loadModule, loadErrors$ } from "../loadModule.ts";
import {
  dismissConflictLoser,
  restoreConflictLoser,
  watchConflictLosers,
  watchReplacedRows,
} from "../sync/conflictLosers.ts";
import { RejectedRows, type RejectedRow } from "../sync/rejectedRows.ts";
import { ensureSession, changeSession, deleted$, sessionStates } from "../chat/sessions.ts";
import { TabCoordinator, type SyncSummary } from "../sync/tabCoordinator.ts";
import { watchStorageLoss, type StorageLoss } from "../account/storageLoss.ts";
import type { Task } from "../../core/documents/uploadTask.ts";
import { UploadQueue } from "../uploads/uploadQueue.ts";

/** Snapshot of the states of the sync, the embedding model and the uploads. */
export interface State {
  sync: SyncSummary;
  model: ModelState;
  uploads: Task[];
}

/** The streams of values that the page can watch. */
export interface Streams {
  /** The account, now and each time that its tier, its limits or the time of "forget everything" changes. */
  account: DeviceAccount;
  sync: SyncSummary;
  model: ModelState;
  uploads: Task[];
  /** Maps the ids of the documents that the server is embedding to their progress. */
  embedding: Record<string, Progress>;
  /** Patches for the answer drafts. The first patch contains all drafts. */
  answerDrafts: DraftPatches<AnswerDraft>;
  assistant: AssistantState;
  rejectedRows: RejectedRow[];
  /** A value for each module of the worker that fails to load. */
  loadErrors: unknown;
  /** The id of each session deleted on this device and each fact deleted anywhere. */
  deleted: string;
}

/** Operations that need only the account. The API has a method for each of them. */
const operations = {
  ...{ changeSession, sessionStates, deleteSession, deleteProject, deleteRow },
  ...{ mentionedDocuments, borrow, includeDocument, returnDocument, deleteDocuments, usage: accounts.usage },
  ...{ addFact, changeFact, restoreConflictLoser, dismissConflictLoser, isMostlyForeign },
};

/** All operations on one account on this device. */
export interface AccountApi extends Bound<typeof operations> {}

export class AccountApi {
  readonly #context: AccountContext;
  readonly #sync: TabCoordinator;
  readonly #model: EmbeddingModel;
  readonly #asking: AnswerService;
  readonly #uploads: UploadQueue;
  readonly #refused: RejectedRows;
  readonly #leftovers: DeletedTextErasure;
  readonly #unwatch: Unsubscribe;
  readonly #streams: { [Name in keyof Streams]: Observable<Streams[Name]> };
  readonly #searcher = lazy(async () => {
    const { DocumentSearch } = await loadModule(import("../library/documentSearch.ts"));
    return new DocumentSearch(this.#context, this.#model);
  });
  readonly #finder = lazy(async () => {
    const { QuickSearch } = await loadModule(import("../library/quickSearch.ts"));
    return new QuickSearch(this.#context.database);
  });
  /**
   * Operations on projects, memories, agent observations and background jobs. The module is loaded on first
   * use.
   */
  readonly memory = lazyApi(
    lazy(async () => {
      const { memoryApi } = await loadModule(import("./memoryApi.ts"));
      return memoryApi(this.#context);
    }),
  );
  /**
   * Maps the id of a new session to the id of its project. A new session has no row yet that could store its project.
   */
  readonly #projects = new Map<string, string>();
  /** Number of running exports and imports. */
  #carrying = 0;

  constructor(context: AccountContext) {
    Object.assign(this, bindContext(context, operations));
    this.#context = context;
    this.#sync = new TabCoordinator(context);
    this.#model = new EmbeddingModel(context);
    this.#uploads = new UploadQueue(context, this.#sync, this.#model, (id) => this.#begin(id));
    this.#asking = new AnswerService(context, this.#sync, this.#searcher, this.#uploads);
    this.#refused = new RejectedRows(context);
    this.#leftovers = new DeletedTextErasure(context, this.#sync);
    const { account, account$, device } = context;
    this.#unwatch = device.watchAccount(account.userId, (found) => account$.next(found));
    this.#sync.reconnected$.subscribe(() => {
      void accounts.refreshProfile(context);
      void this.#model.fetchManifest();
    });
    const sharedFields = ({ tier, limits, forgottenAt }: DeviceAccount) =>
      JSON.stringify([tier, limits, forgottenAt]);
    this.#streams = {
      account: account$.pipe(distinctUntilChanged((a, b) => sharedFields(a) === sharedFields(b))),
      sync: this.#sync.summary$,
      model: this.#model.state$,
      uploads: this.#uploads.tasks$,
      embedding: this.#sync.serverEmbedding$,
      answerDrafts: this.#asking.throttledDrafts$.pipe(
        startWith({}),
        pairwise(),
        map(([before, after]) => diffDrafts(before, after)),
      ),
      assistant: this.#asking.assistant$,
      rejectedRows: this.#refused.rows$,
      loadErrors: loadErrors$,
      deleted: deleted$(context),
    };
    watchReplacedRows(context);
    this.#sync.start();
    this.#model.start(this.#sync);
    void this.#uploads.resume().then(() => this.#asking.resume());
  }

  account(): DeviceAccount {
    return this.#context.account;
  }

  /**
   * Call `listener` after a storage loss. Also release the account lock, so that a tab with a newer version of the app
   * need not wait for this tab.
   */
  watchStorageLoss(listener: ((loss: StorageLoss) => void) & ProxyMarked): void {
    watchStorageLoss(this.#context, (loss) => {
      this.#context.releaseLock();
      listener(loss);
    });
  }

  // -- subscriptions ----------------------------------------------------------------------------------------

  /** Call `listener` with the rows of a collection that match a Mango query, now and after every change. */
  watchRows<Name extends keyof Collections>(
    name: Name,
    query: object,
    listener: ((rows: Collections[Name][]) => void) & ProxyMarked,
  ): Unsubscribe & ProxyMarked {
    const found = (this.#context.database.collections[name] as any).find(query);
    const subscription = found.$.subscribe((rows: any[]) => listener(rows.map((row) => row.toJSON())));
    return proxy(() => subscription.unsubscribe());
  }

  /** Return the rows of a collection that match a Mango query. */
  async rows<Name extends keyof Collections>(name: Name, query: object = {}): Promise<Collections[Name][]> {
    const rows = await (this.#context.database.collections[name] as any).find(query).exec();
    return rows.map((row: any) => row.toJSON());
  }

  state(): State {
    return {
      sync: this.#sync.summary$.value,
      model: this.#model.state$.value,
      uploads: this.#uploads.tasks$.value,
    };
  }

  /** Call `listener` with the values of a stream. */
  watch<Name extends keyof Streams>(name: Name, listener: ((value: Streams[Name]) => void) & ProxyMarked) {
    return proxySubscription(this.#streams[name] as Observable<Streams[Name]>, listener);
  }

  /** Call `listener` with the chunks of a document, now and when its text changes. */
  watchChunks(documentId: string, listener: (chunks: VectorEmbeddingDoc["chunks"]) => void) {
    return proxySubscription(chunks$(this.#context, documentId), listener);
  }

  watchConflictLosers(listener: ((lost: ConflictLoser[]) => void) & ProxyMarked): Unsubscribe & ProxyMarked {
    return proxy(watchConflictLosers(this.#context, listener));
  }

  /** Call `listener` with the ids of the files that are not documents yet, now and after every change. */
  watchFiles(listener: ((ids: string[]) => void) & ProxyMarked): Unsubscribe & ProxyMarked {
    return proxy(this.#context.device.watchFiles(this.#context.account.userId, listener));
  }

  async quickSearch(query: string) {
    return (await this.#finder()).find(query);
  }

  // -- chats ------------------------------------------------------------------------------------------------

  async ask(sessionId: string, message: string): Promise<string> {
    await this.#begin(sessionId, message);
    return this.#asking.ask(sessionId, message);
  }

  regenerateAnswer(episodeId: string, message?: string) {
    return this.#asking.regenerate(episodeId, message);
  }

  stopAnswer(episodeId: string) {
    this.#asking.stop(episodeId);
  }

  answerWithoutWaiting(episodeId: string) {
    this.#asking.answerWithoutWaiting(episodeId);
  }

  /** Return whether a reload of the page would interrupt an answer, an export or an import in this tab. */
  isBusy(): boolean {
    return this.#carrying > 0 || Object.keys(this.#asking.drafts$.value).length > 0;
  }

  promptSummary(episodeId: string) {
    return this.#asking.promptSummary(episodeId);
  }

  /**
   * Return the prompt of a question. Return null if the turn was deleted, or if the model that counts tokens is not
   * available.
   */
  async previewPrompt(episodeId: string) {
    const [{ previewPrompt: context }, searcher] = await Promise.all([
      loadModule(import("../chat/prompt_context.ts")),
      this.#searcher(),
    ]);
    return context(this.#context, this.#model, searcher, episodeId);
  }

  deferQuestion(episodeId: string, wanted: boolean) {
    return this.#asking.defer(episodeId, wanted);
  }

  /**
   * Load the documents of an opened session for its first search. Pass `projectId` if the session is new and belongs to
   * a project.
   */
  prepareSearch(sessionId: string, projectId?: string | null) {
    if (projectId) this.#projects.set(sessionId, projectId);
    return this.#searcher().then((searcher) => searcher.prepare(sessionId));
  }

  #begin(sessionId: string, about = "") {
    return ensureSession(this.#context, sessionId, about, this.#projects.get(sessionId));
  }

  // -- documents --------------------------------------------------------------------------------------------

  addFiles(files: File[], sessionId: string | null) {
    return this.#uploads.add(files, sessionId);
  }

  cancelUpload(id: string) {
    return this.#uploads.cancel(id);
  }

  retryUpload(id: string) {
    return this.#uploads.retry(id);
  }

  cancelWaitingUploads() {
    return this.#uploads.cancelWaiting();
  }

  retryAllUploads() {
    return this.#uploads.retryAll();
  }

  clearFinishedUploads() {
    this.#uploads.clearFinished();
  }

  /** Borrow a document for a session. Create the session if it does not exist. */
  async borrowInto(documentId: string, sessionId: string): Promise<void> {
    await this.#begin(sessionId);
    await borrow(this.#context, documentId, sessionId);
  }

  // -- this device ------------------------------------------------------------------------------------------

  /**
   * Store the user's consent to download the embedding model, then download it in the background. An interrupted download
   * is resumed.
   */
  downloadModel() {
    return this.#model.acceptDownload();
  }

  declineModel() {
    return this.#model.declineDownload();
  }

  syncNow() {
    this.#sync.syncNow();
  }

  retryRejectedRows(row?: Pick<RejectedRow, "collection" | "id">) {
    return row ? this.#refused.retry(row) : this.#refused.retryAll();
  }

  /** Export the account as a ZIP. The module is loaded on demand, because few users need it. */
  exportAccount(): Promise<Blob> {
    return this.#carry(async () =>
      (await loadModule(import("../export/exportAccount.ts"))).exportAccount(this.#context),
    );
  }

  importAccount(zip: Blob) {
    return this.#carry(async () =>
      (await loadModule(import("../export/importAccount.ts"))).importAccount(this.#context, zip),
    );
  }

  async #carry<T>(work: () => Promise<T>): Promise<T> {
    this.#carrying++;
    try {
      return await work();
    } finally {
      this.#carrying--;
    }
  }

  // -- the account ------------------------------------------------------------------------------------------

  profile() {
    return accounts.profile(this.#context.server);
  }

  changePassword(current: string, password: string) {
    return accounts.changePassword(this.#context.server, current, password);
  }

  async signInAgain(password: string): Promise<void> {
    await accounts.signInAgain(this.#context, ANY_ACCOUNT, password);
    this.#sync.syncNow();
  }

  /**
   * Sign this browser out on the server. The caller then closes the account or removes it from the device.
   */
  signOut() {
    return accounts.signOut(this.#context.server);
  }

  /**
   * Forget everything on the server and return the receipt of the erasure. The caller then removes the account from the
   * device.
   */
  async forgetEverything(): Promise<ErasureReceipt> {
    return (await loadModule(import("../account/forgetEverything.ts"))).forgetEverything(this.#context);
  }

  /**
   * Return the time since when deleted text has been on the disk, and whether there is room to erase it. Return null if
   * there is no deleted text.
   */
  async deletedTextStatus(): Promise<{ since: string; hasRoom: boolean } | null> {
    const { leftover } = this.#context.account;
    return leftover ? { since: leftover.since, hasRoom: await hasRoomForRewrite() } : null;
  }

  /** Stop the sync and close the account, keeping its data on the device. The caller must then reload the page. */
  async close(): Promise<void> {
    this.#unwatch();
    this.#leftovers.stop();
    await this.#sync.stop();
    await this.#context.close();
  }

  /** Close the account and remove it from this device. */
  async removeFromDevice(): Promise<void> {
    await this.close();
    await accounts.removeFromDevice(this.#context.device, this.#context.account.userId);
  }
}
