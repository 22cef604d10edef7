/**
 * The one place where parts meet, once somebody is signed in. It runs in a worker: the page draws, and everything it
 * knows it asks here.
 *
 * What is proxied or streamed to the page is plain data: rows as they are on the wire.
 */

import { proxy, type ProxyMarked } from "comlink";
import { distinctUntilChanged } from "rxjs";
import type { DeviceAccount, ConflictLoser } from "../../storage/deviceDatabase.ts";
import { WHOEVER } from "../../lib/http.ts";
import { proxySubscription, type Unsubscribe } from "./proxySubscription.ts";
import { lazily } from "../../lib/lazy.ts";
import { lazyApi } from "./lazyApi.ts";
import type { Progress } from "../../core/documents/documentList.ts";
import type { Collections, DocumentDoc, VectorEmbeddingDoc } from "../../core/schema/rows.ts";
import * as accounts from "../account/accounts.ts";
import { AnswerService, type AssistantState, type AnswerDraft } from "../chat/answerQuestion.ts";
import * as deletion from "../library/deletion.ts";
import { borrow, chunks$, giveBack, include, offered } from "../library/documents.ts";
import { Embedding, type ModelState } from "../library/embeddingModel.ts";
import { addFact, changeFact } from "../memory/facts.ts";
import type { ErasureReceipt } from "../account/forgetEverything.ts";
import type { House } from "../account/accountContext.ts";
import { hasRoom, Leftovers } from "../account/deletedTextErasure.ts";
import { loaded, unloaded$ } from "../loadModule.ts";
import { dismissLost, restoreLost, watchLost, watchReplaced } from "../sync/conflictLosers.ts";
import { RejectedRows, type RejectedRow } from "../sync/rejectedRows.ts";
import { beginSession, changeSession, deleted$, known } from "../chat/sessions.ts";
import { SyncCoordinator, type SyncSummary } from "../sync/syncCoordinator.ts";
import { watchTaken, type StorageLoss } from "../account/storageLoss.ts";
import type { Task } from "../../core/documents/uploadTask.ts";
import { Uploads } from "../uploads/uploadQueue.ts";

/** What the app knows of itself at this moment. */
export interface State {
  sync: SyncSummary;
  model: ModelState;
  uploads: Task[];
}

/** Everything that can be done with one account on this device. A method is a verb of services/. */
export class AccountApi {
  readonly #house: House;
  readonly #syncing: SyncCoordinator;
  readonly #embedding: Embedding;
  readonly #asking: AnswerService;
  readonly #uploads: Uploads;
  readonly #refused: RejectedRows;
  readonly #leftovers: Leftovers;
  readonly #unwatch: Unsubscribe;
  readonly #searcher = lazily(async () => {
    const { Searcher } = await loaded(import("../library/documentSearch.ts"));
    return new Searcher(this.#house, this.#embedding);
  });
  readonly #finder = lazily(async () => {
    const { QuickSearch } = await loaded(import("../library/quickSearch.ts"));
    return new QuickSearch(this.#house.records);
  });
  /** The rest of what is remembered, and projects. */
  readonly memory = lazyApi(
    lazily(async () => {
      const { MemoryApi } = await loaded(import("./memoryApi.ts"));
      return new MemoryApi(this.#house);
    }),
  );
  /** The projects of sessions that are no rows yet. */
  readonly #projects = new Map<string, string>();
  /** How many exports and imports are under way. */
  #carrying = 0;

  constructor(house: House) {
    this.#house = house;
    this.#syncing = new SyncCoordinator(house);
    this.#embedding = new Embedding(house);
    this.#uploads = new Uploads(house, this.#syncing, this.#embedding, (id) => this.#begin(id));
    this.#asking = new AnswerService(house, this.#syncing, this.#searcher, this.#uploads);
    this.#refused = new RejectedRows(house);
    this.#leftovers = new Leftovers(house, this.#syncing);
    const { account, account$, device } = house;
    this.#unwatch = device.watchAccount(account.userId, (found) => account$.next(found));
    this.#syncing.back$.subscribe(() => {
      void accounts.refresh(house);
      void this.#embedding.manifest();
    });
    watchReplaced(house);
    this.#syncing.start();
    this.#embedding.start(this.#syncing);
    void this.#uploads.resume().then(() => this.#asking.resume());
  }

  account(): DeviceAccount {
    return this.#house.account;
  }

  /** Nothing goes on here then: a tab with a newer version need not wait until this one is closed. */
  watchStorageLoss(listener: ((loss: StorageLoss) => void) & ProxyMarked): void {
    watchTaken(this.#house, (loss) => {
      this.#house.leave();
      listener(loss);
    });
  }

  // -- what there is, now and whenever it changes -----------------------------------------------------------

  /** Rows of a collection that fit a Mango query, at once and again after every change. */
  watchRows<Name extends keyof Collections>(
    name: Name,
    query: object,
    listener: ((rows: Collections[Name][]) => void) & ProxyMarked,
  ): Unsubscribe & ProxyMarked {
    const found = (this.#house.records.collections[name] as any).find(query);
    const subscription = found.$.subscribe((rows: any[]) => listener(rows.map((row) => row.toJSON())));
    return proxy(() => subscription.unsubscribe());
  }

  /** The same, once. */
  async rows<Name extends keyof Collections>(name: Name, query: object = {}): Promise<Collections[Name][]> {
    const rows = await (this.#house.records.collections[name] as any).find(query).exec();
    return rows.map((row: any) => row.toJSON());
  }

  state(): State {
    return {
      sync: this.#syncing.summary$.value,
      model: this.#embedding.state$.value,
      uploads: this.#uploads.tasks$.value,
    };
  }

  /** The account, and again when another tier or limit, or that everything was forgotten, is heard of. */
  watchAccount(listener: (account: DeviceAccount) => void) {
    const sharedFields = ({ tier, limits, forgottenAt }: DeviceAccount) =>
      JSON.stringify([tier, limits, forgottenAt]);
    const same = (a: DeviceAccount, b: DeviceAccount) => sharedFields(a) === sharedFields(b);
    return proxySubscription(this.#house.account$.pipe(distinctUntilChanged(same)), listener);
  }

  watchSync(listener: (summary: SyncSummary) => void) {
    return proxySubscription(this.#syncing.summary$, listener);
  }

  watchModel(listener: (state: ModelState) => void) {
    return proxySubscription(this.#embedding.state$, listener);
  }

  watchUploads(listener: (tasks: Task[]) => void) {
    return proxySubscription(this.#uploads.tasks$, listener);
  }

  /** How far documents are that the server embeds, by their ids. */
  watchEmbedding(listener: (progress: Record<string, Progress>) => void) {
    return proxySubscription(this.#syncing.embedding$, listener);
  }

  /** The text of a document as its chunks, and again when more of it comes. */
  watchChunks(documentId: string, listener: (chunks: VectorEmbeddingDoc["chunks"]) => void) {
    return proxySubscription(chunks$(this.#house, documentId), listener);
  }

  watchAnswerDrafts(listener: (writing: Record<string, AnswerDraft>) => void) {
    return proxySubscription(this.#asking.drawn$, listener);
  }

  watchAssistant(listener: (assistant: AssistantState) => void) {
    return proxySubscription(this.#asking.assistant$, listener);
  }

  watchRejectedRows(listener: (rows: RejectedRow[]) => void) {
    return proxySubscription(this.#refused.rows$, listener);
  }

  watchConflictLosers(listener: ((lost: ConflictLoser[]) => void) & ProxyMarked): Unsubscribe & ProxyMarked {
    return proxy(watchLost(this.#house, listener));
  }

  /** Each time that a part of this could not be loaded. */
  watchLoadErrors(listener: () => void) {
    return proxySubscription(unloaded$, listener);
  }

  /** The ids of files that are no documents yet. */
  watchFiles(listener: ((ids: string[]) => void) & ProxyMarked): Unsubscribe & ProxyMarked {
    return proxy(this.#house.device.watchFiles(this.#house.account.userId, listener));
  }

  async quickSearch(query: string) {
    return (await this.#finder()).find(query);
  }

  // -- conversations ----------------------------------------------------------------------------------------

  async ask(sessionId: string, message: string): Promise<string> {
    await this.#begin(sessionId, message);
    return this.#asking.ask(sessionId, message);
  }

  regenerateAnswer(episodeId: string, message?: string) {
    return this.#asking.again(episodeId, message);
  }

  stopAnswer(episodeId: string) {
    this.#asking.stop(episodeId);
  }

  answerWithoutWaiting(episodeId: string) {
    this.#asking.answerNow(episodeId);
  }

  /** Whether this tab is at what would be cut off if the page were loaded anew: an answer, an export, an import. */
  isBusy(): boolean {
    return this.#carrying > 0 || Object.keys(this.#asking.writing$.value).length > 0;
  }

  promptSummary(episodeId: string) {
    return this.#asking.told(episodeId);
  }

  /** What an assistant would be told before a question; null: it is gone, or the model is not here that counts. */
  async previewPrompt(episodeId: string) {
    const [{ context }, searcher] = await Promise.all([
      loaded(import("../chat/prompt_context.ts")),
      this.#searcher(),
    ]);
    return context(this.#house, this.#embedding, searcher, episodeId);
  }

  /** Documents of the pool that a message names and the session does not see, best first. */
  mentionedDocuments(message: string, sessionId: string): Promise<DocumentDoc[]> {
    return offered(this.#house, message, sessionId);
  }

  deferQuestion(episodeId: string, wanted: boolean) {
    return this.#asking.later(episodeId, wanted);
  }

  /** It is open. `projectId`: where it belongs from its first message on, if it is none yet. */
  prepareSearch(sessionId: string, projectId?: string | null) {
    if (projectId) this.#projects.set(sessionId, projectId);
    return this.#searcher().then((searcher) => searcher.prepare(sessionId));
  }

  #begin(sessionId: string, about = "") {
    return beginSession(this.#house, sessionId, about, this.#projects.get(sessionId));
  }

  changeSession(id: string, change: Parameters<typeof changeSession>[2]) {
    return changeSession(this.#house, id, change);
  }

  /** Those of these ids that are conversations here, and whether they are deleted. */
  sessionStates(ids: string[]) {
    return known(this.#house, ids);
  }

  /** Of each conversation that is deleted on this device, and each fact that is anywhere, its id. */
  watchDeleted(listener: (id: string) => void) {
    return proxySubscription(deleted$(this.#house), listener);
  }

  deleteSession(id: string) {
    return deletion.deleteSession(this.#house, id);
  }

  // -- documents --------------------------------------------------------------------------------------------

  addFiles(files: File[], sessionId: string | null) {
    return this.#uploads.add(files, sessionId);
  }

  cancelUpload(id: string) {
    return this.#uploads.cancel(id);
  }

  retryUpload(id: string) {
    return this.#uploads.again(id);
  }

  cancelWaitingUploads() {
    return this.#uploads.cancelWaiting();
  }

  retryAllUploads() {
    return this.#uploads.allAgain();
  }

  clearFinishedUploads() {
    this.#uploads.clear();
  }

  borrow(documentId: string, sessionId: string) {
    return borrow(this.#house, documentId, sessionId);
  }

  /** The same from a conversation that may not be a row yet. */
  async borrowInto(documentId: string, sessionId: string): Promise<void> {
    await this.#begin(sessionId);
    await borrow(this.#house, documentId, sessionId);
  }

  includeDocument(documentId: string, sessionId: string) {
    return include(this.#house, documentId, sessionId);
  }

  returnDocument(documentId: string, sessionId: string) {
    return giveBack(this.#house, documentId, sessionId);
  }

  deleteDocuments(ids: string[]) {
    return deletion.deleteDocuments(this.#house, ids);
  }

  usage() {
    return accounts.usage(this.#house);
  }

  // -- memory -----------------------------------------------------------------------------------------------

  addFact(key: string, value: string) {
    return addFact(this.#house, key, value);
  }

  changeFact(id: string, change: Parameters<typeof changeFact>[2]) {
    return changeFact(this.#house, id, change);
  }

  deleteProject(id: string, withSessions = false) {
    return deletion.deleteProject(this.#house, id, withSessions);
  }

  deleteRow(collection: deletion.Deletable, id: string) {
    return deletion.deleteRow(this.#house, collection, id);
  }

  // -- this device ------------------------------------------------------------------------------------------

  /** Fetches the model, unless it is here; what has arrived of it is kept. */
  downloadModel() {
    void this.#embedding.fetch();
  }

  syncNow() {
    this.#syncing.again();
  }

  retryRejectedRows(row?: Pick<RejectedRow, "collection" | "id">) {
    return row ? this.#refused.tryAgain(row) : this.#refused.tryAllAgain();
  }

  restoreConflictLoser(id: string) {
    return restoreLost(this.#house, id);
  }

  dismissConflictLoser(id: string) {
    return dismissLost(this.#house, id);
  }

  /** Everything of this account as a ZIP. Loaded when it is wanted, as few want it. */
  exportAccount(): Promise<Blob> {
    return this.#carry(async () => (await loaded(import("../export/exportAccount.ts"))).takeOut(this.#house));
  }

  importAccount(zip: Blob) {
    return this.#carry(async () =>
      (await loaded(import("../export/importAccount.ts"))).bringIn(this.#house, zip),
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
    return accounts.profile(this.#house.wire);
  }

  changePassword(current: string, password: string) {
    return accounts.changePassword(this.#house.wire, current, password);
  }

  async signInAgain(password: string): Promise<void> {
    await accounts.signInAgain(this.#house, WHOEVER, password);
    this.#syncing.again();
  }

  /** On the server. Here nothing has changed yet: `close` or `wipe` comes next. */
  signOut() {
    return accounts.signOut(this.#house.wire);
  }

  /** On the server, which answers when it has erased and checked. `wipe` comes next. */
  async forgetEverything(): Promise<ErasureReceipt> {
    return (await loaded(import("../account/forgetEverything.ts"))).forgetEverything(this.#house);
  }

  /** Since when deleted text has been on the disk, and whether there is room to erase it; null: there is none. */
  async deletedTextStatus(): Promise<{ since: string; hasRoom: boolean } | null> {
    const { leftover } = this.#house.account;
    return leftover ? { since: leftover.since, hasRoom: await hasRoom() } : null;
  }

  /** Ends this visit: the page must be loaded anew. What is on the device stays. */
  async close(): Promise<void> {
    this.#unwatch();
    this.#leftovers.stop();
    await this.#syncing.stop();
    await this.#house.close();
  }

  /** The same, and takes the account from this device. */
  async removeFromDevice(): Promise<void> {
    await this.close();
    await accounts.wipe(this.#house.device, this.#house.account.userId);
  }
}
