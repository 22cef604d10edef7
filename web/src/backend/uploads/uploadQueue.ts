/**
 * Turn files into documents. The server parses a file if it is reachable, otherwise this device does. The file stays on
 * this device until its text is stored, so that it survives a closed page and a failing server.
 * The states of an upload are in core/documents/uploadTask.ts.
 */

import { distinctUntilChanged, filter, first, map } from "rxjs";
import type { WaitingFile } from "../../storage/deviceDatabase.ts";
import { isQuotaExceeded } from "../../lib/quotaExceeded.ts";
import { parseInWorker, throwNotLoaded, Unreadable } from "../../parsers/parseInWorker.ts";
import { lockNames } from "../../lib/locks.ts";
import { ApiError } from "../../lib/http.ts";
import { canTryAgain, isFinished, mayRetry, type Change } from "../../core/documents/uploadTask.ts";
import { deleteDocuments } from "../deletion/deletion.ts";
import { borrow, isWhole } from "../library/documents.ts";
import type { EmbeddingModel } from "../library/embeddingModel.ts";
import { newId } from "../../core/schema/uuid7.ts";
import { sha256 } from "../../lib/sha256.ts";
import { EmbeddingResumer } from "./resumeEmbedding.ts";
import { watchServerEmbedding } from "./watchServerEmbedding.ts";
import { FileLocks } from "./fileLocks.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { loadModule } from "../loadModule.ts";
import { RetrySchedule } from "../../lib/backoff.ts";
import { sendFile } from "./sendFile.ts";
import type { TabCoordinator } from "../sync/tabCoordinator.ts";
import { UploadTasks } from "./uploadTasks.ts";

/** Time limit for picking up the files of closed tabs. After it, another tab is assumed to process these files. */
const PICKUP_TIMEOUT_MS = 2_000;
/** Error codes of account limits. The file itself is valid, so this device parses it and stores the text. */
const NO_ROOM = new Set(["DOCUMENT_LIMIT", "STORAGE_LIMIT"]);

/**
 * Load the modules that chunk and store text. They are first loaded when the app opens, while the network is likely to
 * work.
 */
const storing = () =>
  loadModule(Promise.all([import("../../core/documents/chunking.ts"), import("./storeDocument.ts")]));

export class UploadQueue {
  readonly #tasks = new UploadTasks();
  readonly tasks$ = this.#tasks.list$;
  readonly #context: AccountContext;
  readonly #sync: TabCoordinator;
  readonly #model: EmbeddingModel;
  readonly #finishing: EmbeddingResumer;
  readonly #begin: (sessionId: string) => Promise<unknown>;
  readonly #retries = new RetrySchedule();
  /**
   * Locks of files. A lock is held from before its file is stored on this device until the file is a document or is
   * removed.
   */
  readonly #locks = new FileLocks();
  readonly #stops = new Map<string, AbortController>();
  /** Failed files by id, which can be retried while the page is open. */
  readonly #failed = new Map<string, WaitingFile>();
  /** Number of calls of `cancelWaiting`. When it increases, running calls of `add` stop adding files. */
  #halts = 0;
  #queue: Promise<void> = Promise.resolve();
  #adding: Promise<unknown> = Promise.resolve();

  /** Create the queue. `begin` creates the session of a file if the session does not exist. */
  constructor(
    context: AccountContext,
    sync: TabCoordinator,
    embedding: EmbeddingModel,
    begin: (sessionId: string) => Promise<unknown> = async () => {},
  ) {
    this.#begin = begin;
    this.#context = context;
    this.#sync = sync;
    this.#model = embedding;
    this.#finishing = new EmbeddingResumer(context, sync, embedding, this.#tasks, this.#locks);
    storing().catch(() => {}); // load now, while online; a failure is reported when the modules are needed
    const isLive$ = sync.summary$.pipe(
      map(({ kind }) => kind === "live"),
      distinctUntilChanged(),
    );
    isLive$.pipe(filter(Boolean)).subscribe(() => this.#then(() => this.#sendLeft()));
    context.forgotten$.subscribe((moment) => void this.#dropForgotten(moment));
  }

  /** Add files, after the files of earlier calls. Resolve when each file is stored on this device or has failed. */
  add(files: readonly File[], sessionId: string | null): Promise<void> {
    const halts = this.#halts;
    const adding = this.#adding.then(async () => {
      for (const file of files) if (halts === this.#halts) await this.#add(file, sessionId);
    });
    this.#adding = adding.catch(() => {});
    return adding;
  }

  /** Return a promise that resolves when each file that was added so far has a task. */
  readonly filesAdded = (): Promise<unknown> => this.#adding;

  /**
   * Process the files of closed tabs; only one tab at a time does this. Resolve when each of these files has a task, or
   * when another tab is assumed to process them.
   */
  resume(): Promise<void> {
    const { account, device } = this.#context;
    return new Promise((resolve) => {
      setTimeout(resolve, PICKUP_TIMEOUT_MS);
      void navigator.locks.request(lockNames.files(account.userId), async () => {
        device.watchFiles(account.userId, (ids) => {
          void Promise.all(ids.map((id) => this.#takeUp(id))).then(() => resolve());
        });
        this.#finishing.start();
        await new Promise(() => {}); // hold the lock until this tab is closed
      });
    });
  }

  /** Cancel a task. Delete its file and its document, unless the document existed before. */
  async cancel(id: string): Promise<void> {
    const task = this.#tasks.find(id);
    if (!task || isFinished(task)) return;
    if (this.#finishing.stop(id)) return this.#tell(id, { stage: "cancelled" });
    const isOther = task.documentId !== null && task.documentId !== id;
    this.#stops.get(id)?.abort();
    this.#tell(id, { stage: "cancelled", documentId: isOther ? task.documentId : null });
    await this.#context.device.files.delete(id);
    if (!this.#stops.has(id)) this.#locks.release(id); // a running task releases its lock when it stops
    if (isOther) return;
    // Delete the task's document, which may already exist on this device or still arrive from the server.
    const arrived = this.#context.database.documents.findOne(id).$.pipe(first((row) => row !== null));
    arrived.subscribe(() => void deleteDocuments(this.#context, [id]));
  }

  /**
   * Cancel all waiting files, including those still being added. Running tasks, and files that are added later,
   * continue.
   */
  async cancelWaiting(): Promise<void> {
    this.#halts++;
    await this.#adding;
    for (const { id } of this.tasks$.value)
      if (this.#tasks.find(id)?.stage === "waiting") await this.cancel(id);
  }

  /** Remove finished tasks from the list. */
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
      addedAt: this.#context.creationTime(),
    };
    const limit = account.limits.fileBytes;
    if (file.size <= limit) return this.#keep(waiting);
    this.#tasks.add(taskOf(waiting), { stage: "failed", code: "TOO_LARGE", limit });
  }

  async #keep(file: WaitingFile): Promise<void> {
    try {
      if (file.sessionId) await this.#begin(file.sessionId);
      await this.#locks.acquire(file.id); // acquired before another tab can see the file
      await this.#context.device.files.put(file);
    } catch (error) {
      this.#locks.release(file.id);
      this.#tasks.add(taskOf(file));
      this.#fail(file, error);
      return;
    }
    this.#enqueue(file);
  }

  /**
   * Mark a task as failed. `kept` means that a part of its document is stored, so the file stays for the next attempt.
   */
  #fail(file: WaitingFile, error: unknown, kept = false): void {
    this.#tell(file.id, failed(error, kept));
    const task = this.#tasks.find(file.id);
    if (task && mayRetry(task)) this.#failed.set(file.id, file);
  }

  /** Process a file that another tab stored, once the file's lock is free. */
  async #takeUp(id: string): Promise<void> {
    if (this.#locks.has(id)) return;
    await this.#locks.acquire(id);
    const file = await this.#context.device.files.get(id);
    if (file) return this.#enqueue(file);
    this.#locks.release(id);
    // The other tab may have been closed after it stored the text and before it embedded the text.
    this.#finishing.resumeAll();
  }

  #enqueue(file: WaitingFile): void {
    if (this.#stops.has(file.id)) return;
    this.#stops.set(file.id, new AbortController());
    this.#tasks.add(taskOf(file));
    this.#then(() => this.#store(file));
  }

  async #sendLeft(): Promise<void> {
    const { account, device } = this.#context;
    const left = await device.files.where({ userId: account.userId }).toArray();
    for (const file of left) if (!this.#retries.isScheduled(file.id)) this.#sendAgain(file);
  }

  #sendAgain(file: WaitingFile): void {
    if (this.#tasks.find(file.id)?.stage === "needs-server") this.#enqueue(file);
  }

  /** Cancel the files that a "forget everything" deleted (see DeviceDatabase.deleteBefore). */
  async #dropForgotten(moment: string): Promise<void> {
    for (const { id, addedAt } of [...this.#failed.values()]) {
      if (addedAt >= moment) continue;
      this.#failed.delete(id);
      this.#tell(id, { stage: "cancelled" });
      void this.#locks.release(id);
    }
    for (const task of this.tasks$.value) {
      // Tasks that are embedding need no cancellation: they end when their rows are deleted.
      const isFile = !isFinished(task) && task.stage !== "embedding";
      if (isFile && !(await this.#context.device.files.get(task.id))) await this.cancel(task.id);
    }
  }

  /** Retry a failed upload, or the embedding of its document. */
  async retry(id: string): Promise<void> {
    const documentId = this.#tasks.find(id)?.documentId;
    if (documentId) return this.retryEmbedding(documentId);
    const file = this.#failed.get(id);
    this.#failed.delete(id);
    if (file) await this.#keep(file);
  }

  /** Retry all failed tasks that can be retried. */
  async retryAll(): Promise<void> {
    for (const task of this.tasks$.value) if (canTryAgain(task)) await this.retry(task.id);
  }

  retryEmbedding(documentId: string): void {
    this.#finishing.retry(documentId);
  }

  #then(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error: unknown) => console.error(error));
  }

  async #store(file: WaitingFile): Promise<void> {
    const signal = this.#stops.get(file.id)!.signal;
    let left = true;
    try {
      signal.throwIfAborted();
      left = await this.#stored(file, signal);
      if (left) return;
      this.#retries.cancel(file.id);
      await this.#context.device.files.delete(file.id);
    } catch (error) {
      if (this.#context.database.closed) return; // the app was closed, and processes the file when it is opened again
      this.#retries.cancel(file.id);
      const half = await this.#context.database.documents.findOne(file.id).exec();
      // Keep the file if a part of its document is stored, so that the next attempt can complete the document.
      left = !signal.aborted && half !== null;
      if (!signal.aborted) this.#fail(file, error, left);
      else {
        this.#tell(file.id, { stage: "cancelled" });
        await deleteDocuments(this.#context, [file.id]); // delete the part that was stored before the cancellation
      }
      if (!left) await this.#context.device.files.delete(file.id);
    } finally {
      this.#stops.delete(file.id);
      if (!left) this.#locks.release(file.id);
    }
  }

  /**
   * Process a file. Return true if the file must stay on this device: only the server can parse it, or the parser could
   * not be loaded.
   */
  async #stored(file: WaitingFile, signal: AbortSignal): Promise<boolean> {
    const isLive = this.#sync.summary$.value.kind === "live";
    if (isLive && (await this.#byServer(await this.#lent(file), signal))) return false;
    try {
      await this.#here(await this.#lent(file), signal);
      return false;
    } catch (error) {
      if (!(error instanceof Unreadable) || error.code !== "NEEDS_SERVER") throw error;
      this.#tell(file.id, { stage: "needs-server" });
      return true;
    }
  }

  /** Return the file, without its session if the session has been deleted since the file was added. */
  async #lent(file: WaitingFile): Promise<WaitingFile> {
    const { sessionId } = file;
    const isThere = !sessionId || (await this.#context.database.sessions.findOne(sessionId).exec());
    return isThere ? file : { ...file, sessionId: null };
  }

  /**
   * Send a file to the server. Return false if this device must parse the file: the server is unreachable, has no room
   * for it or does not have the session yet.
   */
  async #byServer(file: WaitingFile, signal: AbortSignal): Promise<boolean> {
    const of = file.content.size;
    const onBytes = (done: number) =>
      this.#tell(file.id, done < of ? { stage: "sending", done, of } : { stage: "reading", done: 0, of: 0 });
    onBytes(0); // show the task as sending
    try {
      const { document, existing } = await sendFile(this.#context.server, file, onBytes, signal);
      this.#sync.syncNow();
      if (document.status === "pending") {
        watchServerEmbedding(this.#context, this.#sync, this.#tasks, file.id, document);
      } else {
        // The document does not count as existing if an earlier attempt with this file created it and only the response
        // was lost.
        const lent = existing && document.id !== file.id;
        this.#tell(file.id, { stage: "done", documentId: document.id, existing: lent });
      }
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      if (
        error instanceof ApiError &&
        error.status < 500 &&
        error.status !== 401 && // signed out: parse the file here and sync the text later
        error.status !== 429 &&
        !(error.status === 404 && file.sessionId) && // parse the file here, because its session is not synced yet
        !NO_ROOM.has(error.code)
      ) {
        throw error;
      }
      const retryAfterS = error instanceof ApiError ? error.retryAfterS : undefined;
      this.#retries.schedule(file.id, retryAfterS, () => this.#then(async () => this.#sendAgain(file)));
      return false;
    }
  }

  async #here(file: WaitingFile, signal: AbortSignal): Promise<void> {
    const bytes = await file.content.arrayBuffer();
    const contentHash = await sha256(bytes);
    const same = await this.#context.database.documents.findOne({ selector: { contentHash } }).exec();
    const documentId = same?.id ?? file.id;
    const isOther = documentId !== file.id; // an interrupted attempt with this file has the file's own id
    if (isOther && file.sessionId) await borrow(this.#context, documentId, file.sessionId);
    // The text of a ready document is complete or arrives by the sync. A failed document is parsed again.
    const isHere = same?.status === "pending" && (await isWhole(this.#context, same));
    const whole = isHere || same?.status === "ready" ? same : null;
    if (whole && isOther) {
      this.#tell(file.id, { stage: "done", documentId, existing: true });
      return;
    }
    const of = whole?.chunkCount ?? (await this.#read(file, bytes, contentHash, documentId, signal));
    this.#tell(file.id, { stage: "embedding", documentId, done: 0, of });
    await this.#context.device.files.delete(file.id); // no longer needed, because the text is stored
    await this.#finishing.embed(file.id, documentId, signal);
  }

  /** Parse a file, store its text and return the number of chunks. */
  async #read(
    file: WaitingFile,
    bytes: ArrayBuffer,
    contentHash: string,
    documentId: string,
    signal: AbortSignal,
  ): Promise<number> {
    this.#tell(file.id, { stage: "reading", done: 0, of: 0 });
    const onProgress = (_: string, done: number, of: number) =>
      this.#tell(file.id, { stage: "reading", done, of });
    const { mimeType, pageCount, parts } = await parseInWorker(file.name, bytes, { signal, onProgress });
    const [{ chunk, documentText }, { storeText }] = await storing().catch(throwNotLoaded);
    const chunks = chunk(parts);
    if (chunks.length === 0) throw new Unreadable("EMPTY");
    const textHash = await sha256(new TextEncoder().encode(documentText(parts)));
    const about = {
      ...{ mimeType, contentHash, textHash, size: file.content.size },
      ...(pageCount ? { pageCount } : {}),
    };
    await storeText(this.#context, this.#model, { ...file, id: documentId }, about, chunks, signal);
    return chunks.length;
  }

  #tell(id: string, change: Change): void {
    this.#tasks.update(id, change);
  }
}

function taskOf({ id, name, content, sessionId }: WaitingFile) {
  return { id, name, size: content.size, sessionId };
}

function failed(error: unknown, kept: boolean): Change {
  const stage = "failed";
  if (isQuotaExceeded(error)) return { stage, code: kept ? "QUOTA_KEPT" : "QUOTA" };
  if (error instanceof Unreadable) return { stage, code: error.code };
  if (error instanceof ApiError) return { stage, code: error.code, message: error.message };
  return { stage, code: "ERROR", message: error instanceof Error ? error.message : String(error) };
}
