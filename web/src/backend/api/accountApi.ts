/**
 * The one place where parts meet, once somebody is signed in. It runs in a worker: the page draws, and everything it
 * knows it asks here.
 *
 * What is proxied or streamed to the page is plain data: rows as they are on the wire.
 */

import { proxy, type ProxyMarked } from "comlink";
import { distinctUntilChanged } from "rxjs";
import type { KnownAccount, LostText } from "../../storage/deviceDatabase.ts";
import { WHOEVER } from "../../lib/http.ts";
import { subscribeProxied, type Unsubscribe } from "./proxySubscription.ts";
import { lazily } from "../../lib/lazy.ts";
import type { Progress } from "../../core/documents/documentList.ts";
import type { Collections, DocumentDoc, VectorEmbeddingDoc } from "../../core/schema/rows.ts";
import * as accounts from "../account/accounts.ts";
import { AnswerService, type AssistantState, type StreamingAnswer } from "../chat/answerQuestion.ts";
import * as deletion from "../library/deletion.ts";
import {
  borrow,
  watchChunks,
  returnDocument,
  includeDocument,
  findMentionedDocuments,
} from "../library/documents.ts";
import { EmbeddingModel, type ModelState } from "../library/embeddingModel.ts";
import { addFact, updateFact } from "../memory/facts.ts";
import type { ErasureReceipt } from "../account/forgetEverything.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { hasRoom, DeletedTextTracker } from "../account/deletedTextErasure.ts";
import { loadModule, loadFailures$ } from "../loadModule.ts";
import {
  dismissConflictLoser,
  restoreConflictLoser,
  watchConflictLosers,
  watchReplacedRows,
} from "../sync/conflictLosers.ts";
import { RejectedRows, type RejectedRow } from "../sync/rejectedRows.ts";
import { ensureSession, updateSession, deletedIds$, findSessionStates } from "../chat/sessions.ts";
import { SyncCoordinator, type SyncSummary } from "../sync/syncCoordinator.ts";
import { watchStorageLoss, type StorageLoss } from "../account/storageLoss.ts";
import type { Task } from "../../core/documents/uploadTask.ts";
import { UploadQueue } from "../uploads/uploadQueue.ts";

/** What the app knows of itself at this moment. */
export interface AppState {
  sync: SyncSummary;
  model: ModelState;
  uploads: Task[];
}

/** Everything that can be done with one account on this device. A method is a verb of services/. */
export class AccountApi {
  readonly #context: AccountContext;
  readonly #syncing: SyncCoordinator;
  readonly #embedding: EmbeddingModel;
  readonly #answers: AnswerService;
  readonly #uploads: UploadQueue;
  readonly #rejected: RejectedRows;
  readonly #deletedText: DeletedTextTracker;
  readonly #unsubscribe: Unsubscribe;
  readonly #documentSearch = lazily(async () => {
    const { DocumentSearch } = await loadModule(import("../library/documentSearch.ts"));
    return new DocumentSearch(this.#context, this.#embedding);
  });
  readonly #quickSearch = lazily(async () => {
    const { QuickSearch } = await loadModule(import("../library/quickSearch.ts"));
    return new QuickSearch(this.#context.database);
  });
  /** The rest of what is remembered, and projects. */
  readonly getMemoryApi = lazily(async () => {
    const { MemoryApi } = await loadModule(import("./memoryApi.ts"));
    return proxy(new MemoryApi(this.#context));
  });
  /** The projects of sessions that are no rows yet. */
  readonly #projectOfNewSession = new Map<string, string>();
  /** How many exports and imports are under way. */
  #runningTransfers = 0;

  constructor(context: AccountContext) {
    this.#context = context;
    this.#syncing = new SyncCoordinator(context);
    this.#embedding = new EmbeddingModel(context);
    this.#uploads = new UploadQueue(context, this.#syncing, this.#embedding, (id) => this.#ensureSession(id));
    this.#answers = new AnswerService(context, this.#syncing, this.#documentSearch, this.#uploads);
    this.#rejected = new RejectedRows(context);
    this.#deletedText = new DeletedTextTracker(context, this.#syncing);
    const { account: getAccount, account$, device } = context;
    this.#unsubscribe = device.watchAccount(getAccount.userId, (found) => account$.next(found));
    this.#syncing.reconnected$.subscribe(() => {
      void accounts.refreshAccount(context);
      void this.#embedding.fetchManifest();
    });
    watchReplacedRows(context);
    this.#syncing.start();
    this.#embedding.start(this.#syncing);
    void this.#uploads.resume().then(() => this.#answers.resume());
  }

  account(): KnownAccount {
    return this.#context.account;
  }

  /** Nothing goes on here then: a tab with a newer version need not wait until this one is closed. */
  watchStorageLoss(listener: ((loss: StorageLoss) => void) & ProxyMarked): void {
    watchStorageLoss(this.#context, (loss) => {
      this.#context.releaseLock();
      listener(loss);
    });
  }

  // -- what there is, now and whenever it changes -----------------------------------------------------------

  /** Rows of a collection that fit a Mango query, at once and again after every change. */
  watchRows<Name extends keyof Collections>(
    name: Name,
    query: object,
    listener: ((readRows: Collections[Name][]) => void) & ProxyMarked,
  ): Unsubscribe & ProxyMarked {
    const found = (this.#context.database.collections[name] as any).find(query);
    const subscription = found.$.subscribe((rows: any[]) => listener(rows.map((row) => row.toJSON())));
    return proxy(() => subscription.unsubscribe());
  }

  /** The same, once. */
  async rows<Name extends keyof Collections>(name: Name, query: object = {}): Promise<Collections[Name][]> {
    const rows = await (this.#context.database.collections[name] as any).find(query).exec();
    return rows.map((row: any) => row.toJSON());
  }

  getState(): AppState {
    return {
      sync: this.#syncing.summary$.value,
      model: this.#embedding.state$.value,
      uploads: this.#uploads.tasks$.value,
    };
  }

  /** The account, and again when another tier or limit, or that everything was forgotten, is heard of. */
  watchAccount(listener: (account: KnownAccount) => void) {
    const comparableText = ({ tier, limits, forgottenAt }: KnownAccount) =>
      JSON.stringify([tier, limits, forgottenAt]);
    const isSame = (a: KnownAccount, b: KnownAccount) => comparableText(a) === comparableText(b);
    return subscribeProxied(this.#context.account$.pipe(distinctUntilChanged(isSame)), listener);
  }

  watchSync(listener: (summary: SyncSummary) => void) {
    return subscribeProxied(this.#syncing.summary$, listener);
  }

  watchModel(listener: (state: ModelState) => void) {
    return subscribeProxied(this.#embedding.state$, listener);
  }

  watchUploads(listener: (tasks: Task[]) => void) {
    return subscribeProxied(this.#uploads.tasks$, listener);
  }

  /** How far documents are that the server embeds, by their ids. */
  watchEmbedding(listener: (progress: Record<string, Progress>) => void) {
    return subscribeProxied(this.#syncing.embeddingProgress$, listener);
  }

  /** The text of a document as its chunks, and again when more of it comes. */
  watchChunks(documentId: string, listener: (chunks: VectorEmbeddingDoc["chunks"]) => void) {
    return subscribeProxied(watchChunks(this.#context, documentId), listener);
  }

  watchStreamingAnswers(listener: (writing: Record<string, StreamingAnswer>) => void) {
    return subscribeProxied(this.#answers.throttledStreaming$, listener);
  }

  watchAssistant(listener: (assistant: AssistantState) => void) {
    return subscribeProxied(this.#answers.assistant$, listener);
  }

  watchRejectedRows(listener: (rows: RejectedRow[]) => void) {
    return subscribeProxied(this.#rejected.rows$, listener);
  }

  watchConflictLosers(listener: ((lost: LostText[]) => void) & ProxyMarked): Unsubscribe & ProxyMarked {
    return proxy(watchConflictLosers(this.#context, listener));
  }

  /** Each time that a part of this could not be loaded. */
  watchLoadFailures(listener: () => void) {
    return subscribeProxied(loadFailures$, listener);
  }

  /** The ids of files that are no documents yet. */
  watchWaitingFiles(listener: ((ids: string[]) => void) & ProxyMarked): Unsubscribe & ProxyMarked {
    return proxy(this.#context.device.watchFiles(this.#context.account.userId, listener));
  }

  async quickSearch(query: string) {
    return (await this.#quickSearch()).search(query);
  }

  // -- conversations ----------------------------------------------------------------------------------------

  async ask(sessionId: string, message: string): Promise<string> {
    await this.#ensureSession(sessionId, message);
    return this.#answers.ask(sessionId, message);
  }

  answerAgain(episodeId: string, message?: string) {
    return this.#answers.answerAgain(episodeId, message);
  }

  stop(episodeId: string) {
    this.#answers.stop(episodeId);
  }

  answerNow(episodeId: string) {
    this.#answers.answerNow(episodeId);
  }

  /** Whether this tab is at what would be cut off if the page were loaded anew: an answer, an export, an import. */
  isBusy(): boolean {
    return this.#runningTransfers > 0 || Object.keys(this.#answers.streaming$.value).length > 0;
  }

  promptSummaryOf(episodeId: string) {
    return this.#answers.promptSummaryOf(episodeId);
  }

  /** What an assistant would be told before a question; null: it is gone, or the model is not here that counts. */
  async previewPrompt(episodeId: string) {
    const [{ buildPromptContext: context }, searcher] = await Promise.all([
      loadModule(import("../chat/prompt_context.ts")),
      this.#documentSearch(),
    ]);
    return context(this.#context, this.#embedding, searcher, episodeId);
  }

  /** Documents of the pool that a message names and the session does not see, best first. */
  findMentionedDocuments(message: string, sessionId: string): Promise<DocumentDoc[]> {
    return findMentionedDocuments(this.#context, message, sessionId);
  }

  deferQuestion(episodeId: string, isDeferred: boolean) {
    return this.#answers.later(episodeId, isDeferred);
  }

  /** It is open. `projectId`: where it belongs from its first message on, if it is none yet. */
  openSession(sessionId: string, projectId?: string | null) {
    if (projectId) this.#projectOfNewSession.set(sessionId, projectId);
    return this.#documentSearch().then((searcher) => searcher.preload(sessionId));
  }

  #ensureSession(sessionId: string, about = "") {
    return ensureSession(this.#context, sessionId, about, this.#projectOfNewSession.get(sessionId));
  }

  updateSession(id: string, change: Parameters<typeof updateSession>[2]) {
    return updateSession(this.#context, id, change);
  }

  /** Those of these ids that are conversations here, and whether they are deleted. */
  findSessionStates(ids: string[]) {
    return findSessionStates(this.#context, ids);
  }

  /** Of each conversation that is deleted on this device, and each fact that is anywhere, its id. */
  watchDeletedIds(listener: (id: string) => void) {
    return subscribeProxied(deletedIds$(this.#context), listener);
  }

  deleteSession(id: string) {
    return deletion.deleteSession(this.#context, id);
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

  borrow(documentId: string, sessionId: string) {
    return borrow(this.#context, documentId, sessionId);
  }

  /** The same from a conversation that may not be a row yet. */
  async borrowIntoNewSession(documentId: string, sessionId: string): Promise<void> {
    await this.#ensureSession(sessionId);
    await borrow(this.#context, documentId, sessionId);
  }

  includeDocument(documentId: string, sessionId: string) {
    return includeDocument(this.#context, documentId, sessionId);
  }

  returnDocument(documentId: string, sessionId: string) {
    return returnDocument(this.#context, documentId, sessionId);
  }

  deleteDocuments(ids: string[]) {
    return deletion.deleteDocuments(this.#context, ids);
  }

  readUsage() {
    return accounts.usage(this.#context);
  }

  // -- memory -----------------------------------------------------------------------------------------------

  addFact(key: string, value: string) {
    return addFact(this.#context, key, value);
  }

  updateFact(id: string, change: Parameters<typeof updateFact>[2]) {
    return updateFact(this.#context, id, change);
  }

  deleteProject(id: string, withSessions = false) {
    return deletion.deleteProject(this.#context, id, withSessions);
  }

  deleteRow(collection: deletion.Deletable, id: string) {
    return deletion.deleteRow(this.#context, collection, id);
  }

  // -- this device ------------------------------------------------------------------------------------------

  /** Fetches the model, unless it is here; what has arrived of it is kept. */
  loadModel() {
    void this.#embedding.ensureDownloaded();
  }

  syncNow() {
    this.#syncing.syncNow();
  }

  retryRejectedRows(row?: Pick<RejectedRow, "collection" | "id">) {
    return row ? this.#rejected.retry(row) : this.#rejected.retryAll();
  }

  restoreConflictLoser(id: string) {
    return restoreConflictLoser(this.#context, id);
  }

  dismissConflictLoser(id: string) {
    return dismissConflictLoser(this.#context, id);
  }

  /** Everything of this account as a ZIP. Loaded when it is wanted, as few want it. */
  exportAccount(): Promise<Blob> {
    return this.#trackTransfer(async () =>
      (await loadModule(import("../export/exportAccount.ts"))).exportAccount(this.#context),
    );
  }

  importAccount(zip: Blob) {
    return this.#trackTransfer(async () =>
      (await loadModule(import("../export/importAccount.ts"))).importAccount(this.#context, zip),
    );
  }

  async #trackTransfer<T>(work: () => Promise<T>): Promise<T> {
    this.#runningTransfers++;
    try {
      return await work();
    } finally {
      this.#runningTransfers--;
    }
  }

  // -- the account ------------------------------------------------------------------------------------------

  fetchProfile() {
    return accounts.fetchProfile(this.#context.server);
  }

  changePassword(current: string, password: string) {
    return accounts.changePassword(this.#context.server, current, password);
  }

  async signInAgain(password: string): Promise<void> {
    await accounts.signInAgain(this.#context, WHOEVER, password);
    this.#syncing.syncNow();
  }

  /** On the server. Here nothing has changed yet: `close` or `wipe` comes next. */
  signOut() {
    return accounts.signOut(this.#context.server);
  }

  /** On the server, which answers when it has erased and checked. `wipe` comes next. */
  async forgetEverything(): Promise<ErasureReceipt> {
    return (await loadModule(import("../account/forgetEverything.ts"))).forgetEverything(this.#context);
  }

  /** Since when deleted text has been on the disk, and whether there is room to erase it; null: there is none. */
  async deletedTextState(): Promise<{ since: string; hasRoom: boolean } | null> {
    const { leftover } = this.#context.account;
    return leftover ? { since: leftover.since, hasRoom: await hasRoom() } : null;
  }

  /** Ends this visit: the page must be loaded anew. What is on the device stays. */
  async close(): Promise<void> {
    this.#unsubscribe();
    this.#deletedText.stop();
    await this.#syncing.stop();
    await this.#context.close();
  }

  /** The same, and takes the account from this device. */
  async wipe(): Promise<void> {
    await this.close();
    await accounts.wipeAccount(this.#context.device, this.#context.account.userId);
  }
}
