/**
 * From a file to a document: read by the server where it answers, else here. The file is kept on this device until
 * one of them has its text, so that neither a closed page nor a dead server loses it; afterwards only the text stays.
 */

import { distinctUntilChanged, filter, first, map } from "rxjs";
import type { WaitingFile } from "../../storage/deviceDatabase.ts";
import { isFull } from "../../lib/quotaExceeded.ts";
import { read, unloaded, Unreadable } from "../../parsers/parseInWorker.ts";
import { Refusal } from "../../lib/http.ts";
import { canTryAgain, isOver, isWorthAnotherTry, type Task } from "../../core/documents/uploadTask.ts";
import { deleteDocuments } from "../library/deletion.ts";
import { borrow, isComplete } from "../library/documents.ts";
import type { EmbeddingModel } from "../library/embeddingModel.ts";
import { newId } from "../../core/schema/uuid7.ts";
import { sha256 } from "../../lib/sha256.ts";
import { EmbeddingResumer } from "./resumeEmbedding.ts";
import { watchServerEmbedding } from "./watchServerEmbedding.ts";
import { FileLocks } from "./fileLocks.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { loadModule } from "../loadModule.ts";
import { Retries } from "../../lib/backoff/retrySchedule.ts";
import { sendFile } from "./sendFile.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";
import { UploadTasks } from "./uploadTasks.ts";

/** Whoever begins now has what a page left that was closed before, unless another tab has it. */
const OTHER_TAB_TIMEOUT_MS = 2_000;
/** Refusals that say something about room, not about the file: its text is kept on this device. */
const QUOTA_CODES = new Set(["DOCUMENT_LIMIT", "STORAGE_LIMIT"]);

/** Not needed to open the app, and soon after. */
const loadStoring = () =>
  loadModule(Promise.all([import("../../core/documents/chunking.ts"), import("./storeDocument.ts")]));

export class UploadQueue {
  readonly #tasks = new UploadTasks();
  readonly tasks$ = this.#tasks.list$;
  readonly #context: AccountContext;
  readonly #syncing: SyncCoordinator;
  readonly #embedding: EmbeddingModel;
  readonly #resumer: EmbeddingResumer;
  readonly #ensureSession: (sessionId: string) => Promise<unknown>;
  readonly #retries = new Retries();
  /** From when a file is kept on this device until it is a document, or will never be. */
  readonly #locks = new FileLocks();
  readonly #aborts = new Map<string, AbortController>();
  /** What failed and may not the next time, for as long as the page is open. */
  readonly #failed = new Map<string, WaitingFile>();
  /** How often it was said that no more shall be added. */
  #cancellations = 0;
  #queue: Promise<void> = Promise.resolve();
  #adding: Promise<unknown> = Promise.resolve();

  /** `begin`: makes a row of the session that a file is for, if it is none yet. */
  constructor(
    context: AccountContext,
    syncing: SyncCoordinator,
    embedding: EmbeddingModel,
    begin: (sessionId: string) => Promise<unknown> = async () => {},
  ) {
    this.#ensureSession = begin;
    this.#context = context;
    this.#syncing = syncing;
    this.#embedding = embedding;
    this.#resumer = new EmbeddingResumer(context, syncing, embedding, this.#tasks, this.#locks);
    loadStoring().catch(() => {}); // while there is a network; whoever needs it is told
    const isLive$ = syncing.summary$.pipe(
      map(({ kind }) => kind === "live"),
      distinctUntilChanged(),
    );
    isLive$.pipe(filter(Boolean)).subscribe(() => this.#enqueueWork(() => this.#requeueWaitingFiles()));
    context.forgotten$.subscribe((moment) => void this.#dropForgotten(moment));
  }

  /** Files that were chosen, behind those chosen before: each is safe on this device when this resolves. */
  add(files: readonly File[], sessionId: string | null): Promise<void> {
    const cancellations = this.#cancellations;
    const adding = this.#adding.then(async () => {
      for (const file of files) if (cancellations === this.#cancellations) await this.#add(file, sessionId);
    });
    this.#adding = adding.catch(() => {});
    return adding;
  }

  /** Resolves when each file that was chosen so far is a task. */
  readonly whenQueued = (): Promise<unknown> => this.#adding;

  /**
   * Goes on with what a tab leaves that is closed. One tab does it; when that is closed, the next. Resolves when each file
   * is a task, or when it seems that another tab is at them.
   */
  resume(): Promise<void> {
    const { account, device } = this.#context;
    return new Promise((resolve) => {
      setTimeout(resolve, OTHER_TAB_TIMEOUT_MS);
      void navigator.locks.request(`vademecum-files-${account.userId}`, async () => {
        device.watchFiles(account.userId, (ids) => {
          void Promise.all(ids.map((id) => this.#resumeFile(id))).then(() => resolve());
        });
        this.#resumer.start();
        await new Promise(() => {}); // until this tab goes
      });
    });
  }

  /** Whatever it has come to, nothing of it stays; but a document stays that was here before. */
  async cancel(id: string): Promise<void> {
    const task = this.#tasks.find(id);
    if (!task || isOver(task)) return;
    if (this.#resumer.stop(id)) return this.#updateTask(id, { stage: "cancelled" });
    const isOther = task.documentId !== null && task.documentId !== id;
    this.#aborts.get(id)?.abort();
    this.#updateTask(id, { stage: "cancelled", documentId: isOther ? task.documentId : null });
    await this.#context.device.files.delete(id);
    if (!this.#aborts.has(id)) this.#locks.release(id); // else when it has stopped
    if (isOther) return;
    // Its document may be here, or on its way from a server that had stored it already.
    const arrived = this.#context.database.documents.findOne(id).$.pipe(first((row) => row !== null));
    arrived.subscribe(() => void deleteDocuments(this.#context, [id]));
  }

  /** What waits for its turn, whether it is a task by now or not. What is worked on goes on, also if that begins just now;
   *  and so does what is chosen from now on: that becomes a task only behind what was being added. */
  async cancelWaiting(): Promise<void> {
    this.#cancellations++;
    await this.#adding;
    for (const { id } of this.tasks$.value)
      if (this.#tasks.find(id)?.stage === "waiting") await this.cancel(id);
  }

  /** Takes finished tasks out of the list. */
  clearFinished(): void {
    this.#failed.clear();
    this.#tasks.clearFinished();
  }

  async #add(file: File, sessionId: string | null): Promise<void> {
    const { account } = this.#context;
    const waiting: WaitingFile = {
      id: newId(),
      userId: account.userId,
      sessionId,
      name: file.name,
      content: file,
      addedAt: this.#context.newRowTime(),
    };
    if (file.size > account.limits.fileBytes) {
      this.#tasks.add(taskOf(waiting), { stage: "failed", code: "TOO_LARGE", of: account.limits.fileBytes });
      return;
    }
    await this.#store(waiting);
  }

  async #store(file: WaitingFile): Promise<void> {
    try {
      if (file.sessionId) await this.#ensureSession(file.sessionId);
      await this.#locks.acquire(file.id); // before another tab hears of it
      await this.#context.device.files.put(file);
    } catch (error) {
      this.#locks.release(file.id);
      this.#tasks.add(taskOf(file));
      this.#fail(file, error);
      return;
    }
    this.#enqueue(file);
  }

  /** `kept`: its document is begun, so that the file stays until it is whole. */
  #fail(file: WaitingFile, error: unknown, kept = false): void {
    this.#updateTask(file.id, toFailure(error, kept));
    const task = this.#tasks.find(file.id);
    if (task && isWorthAnotherTry(task)) this.#failed.set(file.id, file);
  }

  /** When no other tab is at it. */
  async #resumeFile(id: string): Promise<void> {
    if (this.#locks.has(id)) return;
    await this.#locks.acquire(id);
    const file = await this.#context.device.files.get(id);
    if (file) return this.#enqueue(file);
    this.#locks.release(id);
    this.#resumer.checkPending(); // its text is safe; whoever was at it may have gone before that was embedded
  }

  #enqueue(file: WaitingFile): void {
    if (this.#aborts.has(file.id)) return;
    this.#aborts.set(file.id, new AbortController());
    this.#tasks.add(taskOf(file));
    this.#enqueueWork(() => this.#process(file));
  }

  async #requeueWaitingFiles(): Promise<void> {
    const { account, device } = this.#context;
    const waiting = await device.files.where({ userId: account.userId }).toArray();
    for (const file of waiting) if (!this.#retries.waits(file.id)) this.#requeue(file);
  }

  #requeue(file: WaitingFile): void {
    if (this.#tasks.find(file.id)?.stage === "needs-server") this.#enqueue(file);
  }

  /** Files that went with everything else (see Device.forgetBefore): nothing is made of them any more. */
  async #dropForgotten(moment: string): Promise<void> {
    for (const { id, addedAt } of [...this.#failed.values()]) {
      if (addedAt >= moment) continue;
      this.#failed.delete(id);
      this.#updateTask(id, { stage: "cancelled" });
      void this.#locks.release(id);
    }
    for (const task of this.tasks$.value) {
      const isFile = !isOver(task) && task.stage !== "embedding"; // a document that embeds ends with its rows
      if (isFile && !(await this.#context.device.files.get(task.id))) await this.cancel(task.id);
    }
  }

  /** Once more, because somebody asks for it: all of it, or what its search index lacks. */
  async retry(id: string): Promise<void> {
    const documentId = this.#tasks.find(id)?.documentId;
    if (documentId) return this.retryEmbedding(documentId);
    const file = this.#failed.get(id);
    this.#failed.delete(id);
    if (file) await this.#store(file);
  }

  /** All that failed and may not the next time. */
  async retryAll(): Promise<void> {
    for (const task of this.tasks$.value) if (canTryAgain(task)) await this.retry(task.id);
  }

  retryEmbedding(documentId: string): void {
    this.#resumer.retry(documentId);
  }

  #enqueueWork(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error: unknown) => console.error(error));
  }

  async #process(file: WaitingFile): Promise<void> {
    const signal = this.#aborts.get(file.id)!.signal;
    let mustStay = true;
    try {
      signal.throwIfAborted();
      mustStay = await this.#processOnce(file, signal);
      if (mustStay) return;
      this.#retries.end(file.id);
      await this.#context.device.files.delete(file.id);
    } catch (error) {
      if (this.#context.database.closed) return; // the app was left: the file is taken up at the next start
      this.#retries.end(file.id);
      const partial = await this.#context.database.documents.findOne(file.id).exec();
      mustStay = !signal.aborted && partial !== null; // the next try, or the next start, takes it up again
      if (!signal.aborted) this.#fail(file, error, mustStay);
      else {
        this.#updateTask(file.id, { stage: "cancelled" });
        await deleteDocuments(this.#context, [file.id]); // what was being written when it was stopped
      }
      if (!mustStay) await this.#context.device.files.delete(file.id);
    } finally {
      this.#aborts.delete(file.id);
      if (!mustStay) this.#locks.release(file.id);
    }
  }

  /** True: the file must stay, because only the server can read it, or what reads it here could not be fetched. */
  async #processOnce(file: WaitingFile, signal: AbortSignal): Promise<boolean> {
    const isLive = this.#syncing.summary$.value.kind === "live";
    if (isLive && (await this.#sendToServer(await this.#withLiveSession(file), signal))) return false;
    try {
      await this.#readLocally(await this.#withLiveSession(file), signal);
      return false;
    } catch (error) {
      if (!(error instanceof Unreadable) || error.code !== "NEEDS_SERVER") throw error;
      this.#updateTask(file.id, { stage: "needs-server" });
      return true;
    }
  }

  /** A conversation that is deleted meanwhile takes no file along. */
  async #withLiveSession(file: WaitingFile): Promise<WaitingFile> {
    const { sessionId } = file;
    const isLive = !sessionId || (await this.#context.database.sessions.findOne(sessionId).exec());
    return isLive ? file : { ...file, sessionId: null };
  }

  /** False: it went away, has no room, or does not know the conversation, so the text is read here. */
  async #sendToServer(file: WaitingFile, signal: AbortSignal): Promise<boolean> {
    const of = file.content.size;
    const onBytes = (done: number) =>
      this.#updateTask(
        file.id,
        done < of ? { stage: "sending", done, of } : { stage: "reading", done: 0, of: 0 },
      );
    onBytes(0); // it waits no longer for those before it
    try {
      const { document, existing } = await sendFile(this.#context.server, file, onBytes, signal);
      this.#syncing.syncNow();
      if (document.status === "pending") {
        watchServerEmbedding(this.#context, this.#syncing, this.#tasks, file.id, document);
      } else {
        const lent = existing && document.id !== file.id; // not by an earlier try, whose answer was lost
        this.#updateTask(file.id, { stage: "done", documentId: document.id, existing: lent });
      }
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      if (
        error instanceof Refusal &&
        error.status < 500 &&
        error.status !== 401 && // signed out: what is read here goes up later
        error.status !== 429 &&
        !(error.status === 404 && file.sessionId) && // its conversation: here it is not deleted yet, or not sent yet
        !QUOTA_CODES.has(error.code)
      ) {
        throw error;
      }
      const retryAfterS = error instanceof Refusal ? error.retryAfterS : undefined;
      this.#retries.later(file.id, retryAfterS, () => this.#enqueueWork(async () => this.#requeue(file)));
      return false;
    }
  }

  async #readLocally(file: WaitingFile, signal: AbortSignal): Promise<void> {
    const bytes = await file.content.arrayBuffer();
    const contentHash = await sha256(bytes);
    const same = await this.#context.database.documents.findOne({ selector: { contentHash } }).exec();
    const documentId = same?.id ?? file.id;
    const isOther = documentId !== file.id; // else of an earlier try, which a closed page broke off
    if (isOther && file.sessionId) await borrow(this.#context, documentId, file.sessionId);
    // A document that is ready was whole, and its text comes by the sync; one that failed is read again.
    const isHere = same?.status === "pending" && (await isComplete(this.#context, same));
    const whole = isHere || same?.status === "ready" ? same : null;
    if (whole && isOther) {
      this.#updateTask(file.id, { stage: "done", documentId, existing: true });
      return;
    }
    const of = whole?.chunkCount ?? (await this.#readAndStore(file, bytes, contentHash, documentId, signal));
    this.#updateTask(file.id, { stage: "embedding", documentId, done: 0, of });
    await this.#context.device.files.delete(file.id); // its text is safe
    await this.#resumer.embed(file.id, documentId, signal);
  }

  /** Its text becomes that of the document: so many chunks. */
  async #readAndStore(
    file: WaitingFile,
    bytes: ArrayBuffer,
    contentHash: string,
    documentId: string,
    signal: AbortSignal,
  ): Promise<number> {
    this.#updateTask(file.id, { stage: "reading", done: 0, of: 0 });
    const onProgress = (_: string, done: number, of: number) => this.#updateTask(file.id, { done, of });
    const { mimeType, pageCount, parts } = await read(file.name, bytes, { signal, onProgress });
    const [{ chunk }, { storeDocument: storeText }] = await loadStoring().catch(unloaded);
    const chunks = chunk(parts);
    if (chunks.length === 0) throw new Unreadable("EMPTY");
    const about = { mimeType, contentHash, size: file.content.size, ...(pageCount ? { pageCount } : {}) };
    await storeText(this.#context, this.#embedding, { ...file, id: documentId }, about, chunks, signal);
    return chunks.length;
  }

  #updateTask(id: string, change: Partial<Task>): void {
    this.#tasks.update(id, change);
  }
}

function taskOf({ id, name, content, sessionId }: WaitingFile) {
  return { id, name, size: content.size, sessionId };
}

function toFailure(error: unknown, isKept: boolean): Partial<Task> {
  const stage = "failed";
  if (isFull(error)) return { stage, code: isKept ? "QUOTA_KEPT" : "QUOTA" };
  if (error instanceof Unreadable) return { stage, code: error.code };
  if (error instanceof Refusal) return { stage, code: error.code, message: error.message };
  return { stage, code: "ERROR", message: error instanceof Error ? error.message : String(error) };
}
