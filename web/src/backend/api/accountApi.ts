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
import { follow, type Stop } from "./proxySubscription.ts";
import { lazily } from "../../lib/lazy.ts";
import type { Progress } from "../../core/documents/documentList.ts";
import type { Collections, DocumentDoc, VectorEmbeddingDoc } from "../../core/schema/rows.ts";
import * as accounts from "../account/accounts.ts";
import { Asking, type AssistantState, type Writing } from "../chat/answerQuestion.ts";
import * as deletion from "../library/deletion.ts";
import { borrow, chunks$, giveBack, include, offered } from "../library/documents.ts";
import { Embedding, type ModelState } from "../library/embeddingModel.ts";
import { addFact, changeFact } from "../memory/facts.ts";
import type { Receipt } from "../account/forgetEverything.ts";
import type { House } from "../account/accountContext.ts";
import { hasRoom, Leftovers } from "../account/deletedTextErasure.ts";
import { loaded, unloaded$ } from "../loadModule.ts";
import { dismissLost, restoreLost, watchLost, watchReplaced } from "../sync/conflictLosers.ts";
import { Refused, type RefusedRow } from "../sync/rejectedRows.ts";
import { beginSession, changeSession, deleted$, known } from "../chat/sessions.ts";
import { Syncing, type SyncSummary } from "../sync/syncCoordinator.ts";
import { watchTaken, type Loss } from "../account/storageLoss.ts";
import type { Task } from "../../core/documents/uploadTask.ts";
import { Uploads } from "../uploads/uploadQueue.ts";

/** What the app knows of itself at this moment. */
export interface State {
  sync: SyncSummary;
  model: ModelState;
  uploads: Task[];
}

/** Everything that can be done with one account on this device. A method is a verb of services/. */
export class Desk {
  readonly #house: House;
  readonly #syncing: Syncing;
  readonly #embedding: Embedding;
  readonly #asking: Asking;
  readonly #uploads: Uploads;
  readonly #refused: Refused;
  readonly #leftovers: Leftovers;
  readonly #unwatch: Stop;
  readonly #searcher = lazily(async () => {
    const { Searcher } = await loaded(import("../library/documentSearch.ts"));
    return new Searcher(this.#house, this.#embedding);
  });
  readonly #finder = lazily(async () => {
    const { Finder } = await loaded(import("../library/quickSearch.ts"));
    return new Finder(this.#house.records);
  });
  /** The rest of what is remembered, and projects. */
  readonly memory = lazily(async () => {
    const { MemoryDesk } = await loaded(import("./memoryApi.ts"));
    return proxy(new MemoryDesk(this.#house));
  });
  /** The projects of sessions that are no rows yet. */
  readonly #projects = new Map<string, string>();
  /** How many exports and imports are under way. */
  #carrying = 0;

  constructor(house: House) {
    this.#house = house;
    this.#syncing = new Syncing(house);
    this.#embedding = new Embedding(house);
    this.#uploads = new Uploads(house, this.#syncing, this.#embedding, (id) => this.#begin(id));
    this.#asking = new Asking(house, this.#syncing, this.#searcher, this.#uploads);
    this.#refused = new Refused(house);
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

  account(): KnownAccount {
    return this.#house.account;
  }

  /** Nothing goes on here then: a tab with a newer version need not wait until this one is closed. */
  watchTaken(listener: ((loss: Loss) => void) & ProxyMarked): void {
    watchTaken(this.#house, (loss) => {
      this.#house.leave();
      listener(loss);
    });
  }

  // -- what there is, now and whenever it changes -----------------------------------------------------------

  /** Rows of a collection that fit a Mango query, at once and again after every change. */
  watch<Name extends keyof Collections>(
    name: Name,
    query: object,
    listener: ((rows: Collections[Name][]) => void) & ProxyMarked,
  ): Stop & ProxyMarked {
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
  watchAccount(listener: (account: KnownAccount) => void) {
    const told = ({ tier, limits, forgottenAt }: KnownAccount) => JSON.stringify([tier, limits, forgottenAt]);
    const same = (a: KnownAccount, b: KnownAccount) => told(a) === told(b);
    return follow(this.#house.account$.pipe(distinctUntilChanged(same)), listener);
  }

  watchSync(listener: (summary: SyncSummary) => void) {
    return follow(this.#syncing.summary$, listener);
  }

  watchModel(listener: (state: ModelState) => void) {
    return follow(this.#embedding.state$, listener);
  }

  watchUploads(listener: (tasks: Task[]) => void) {
    return follow(this.#uploads.tasks$, listener);
  }

  /** How far documents are that the server embeds, by their ids. */
  watchEmbedding(listener: (progress: Record<string, Progress>) => void) {
    return follow(this.#syncing.embedding$, listener);
  }

  /** The text of a document as its chunks, and again when more of it comes. */
  watchChunks(documentId: string, listener: (chunks: VectorEmbeddingDoc["chunks"]) => void) {
    return follow(chunks$(this.#house, documentId), listener);
  }

  watchWriting(listener: (writing: Record<string, Writing>) => void) {
    return follow(this.#asking.drawn$, listener);
  }

  watchAssistant(listener: (assistant: AssistantState) => void) {
    return follow(this.#asking.assistant$, listener);
  }

  watchRefused(listener: (rows: RefusedRow[]) => void) {
    return follow(this.#refused.rows$, listener);
  }

  watchLost(listener: ((lost: LostText[]) => void) & ProxyMarked): Stop & ProxyMarked {
    return proxy(watchLost(this.#house, listener));
  }

  /** Each time that a part of this could not be loaded. */
  watchUnloaded(listener: () => void) {
    return follow(unloaded$, listener);
  }

  /** The ids of files that are no documents yet. */
  watchFiles(listener: ((ids: string[]) => void) & ProxyMarked): Stop & ProxyMarked {
    return proxy(this.#house.device.watchFiles(this.#house.account.userId, listener));
  }

  async find(query: string) {
    return (await this.#finder()).find(query);
  }

  // -- conversations ----------------------------------------------------------------------------------------

  async ask(sessionId: string, message: string): Promise<string> {
    await this.#begin(sessionId, message);
    return this.#asking.ask(sessionId, message);
  }

  answerAgain(episodeId: string, message?: string) {
    return this.#asking.again(episodeId, message);
  }

  stop(episodeId: string) {
    this.#asking.stop(episodeId);
  }

  answerNow(episodeId: string) {
    this.#asking.answerNow(episodeId);
  }

  /** Whether this tab is at what would be cut off if the page were loaded anew: an answer, an export, an import. */
  isBusy(): boolean {
    return this.#carrying > 0 || Object.keys(this.#asking.writing$.value).length > 0;
  }

  told(episodeId: string) {
    return this.#asking.told(episodeId);
  }

  /** What an assistant would be told before a question; null: it is gone, or the model is not here that counts. */
  async wouldBeTold(episodeId: string) {
    const [{ context }, searcher] = await Promise.all([
      loaded(import("../chat/prompt_context.ts")),
      this.#searcher(),
    ]);
    return context(this.#house, this.#embedding, searcher, episodeId);
  }

  /** Documents of the pool that a message names and the session does not see, best first. */
  named(message: string, sessionId: string): Promise<DocumentDoc[]> {
    return offered(this.#house, message, sessionId);
  }

  askLater(episodeId: string, wanted: boolean) {
    return this.#asking.later(episodeId, wanted);
  }

  /** It is open. `projectId`: where it belongs from its first message on, if it is none yet. */
  prepare(sessionId: string, projectId?: string | null) {
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
  knownSessions(ids: string[]) {
    return known(this.#house, ids);
  }

  /** Of each conversation that is deleted on this device, and each fact that is anywhere, its id. */
  watchDeleted(listener: (id: string) => void) {
    return follow(deleted$(this.#house), listener);
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

  uploadAgain(id: string) {
    return this.#uploads.again(id);
  }

  cancelWaitingUploads() {
    return this.#uploads.cancelWaiting();
  }

  uploadAllAgain() {
    return this.#uploads.allAgain();
  }

  clearUploads() {
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

  include(documentId: string, sessionId: string) {
    return include(this.#house, documentId, sessionId);
  }

  giveBack(documentId: string, sessionId: string) {
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
  loadModel() {
    void this.#embedding.fetch();
  }

  syncNow() {
    this.#syncing.again();
  }

  tryRefusedAgain(row?: Pick<RefusedRow, "collection" | "id">) {
    return row ? this.#refused.tryAgain(row) : this.#refused.tryAllAgain();
  }

  restoreLost(id: string) {
    return restoreLost(this.#house, id);
  }

  dismissLost(id: string) {
    return dismissLost(this.#house, id);
  }

  /** Everything of this account as a ZIP. Loaded when it is wanted, as few want it. */
  takeOut(): Promise<Blob> {
    return this.#carry(async () => (await loaded(import("../export/exportAccount.ts"))).takeOut(this.#house));
  }

  bringIn(zip: Blob) {
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
  async forgetEverything(): Promise<Receipt> {
    return (await loaded(import("../account/forgetEverything.ts"))).forgetEverything(this.#house);
  }

  /** Since when deleted text has been on the disk, and whether there is room to erase it; null: there is none. */
  async leftover(): Promise<{ since: string; hasRoom: boolean } | null> {
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
  async wipe(): Promise<void> {
    await this.close();
    await accounts.wipe(this.#house.device, this.#house.account.userId);
  }
}
