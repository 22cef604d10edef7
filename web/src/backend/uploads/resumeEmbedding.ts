/** Resume interrupted embedding, one document at a time. Uploads do not wait for it. */

import { auditTime, distinctUntilChanged, filter, first, map, merge, switchMap, type Observable } from "rxjs";
import { isQuotaExceeded } from "../../lib/quotaExceeded.ts";
import { editRow } from "../../storage/editRow.ts";
import { isAway } from "../../core/sync/syncStatus.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { embedDocument, documentsToEmbed, type EmbedOutcome } from "./embedDocument.ts";
import type { EmbeddingModel } from "../library/embeddingModel.ts";
import type { FileLocks } from "./fileLocks.ts";
import { now, type AccountContext } from "../account/accountContext.ts";
import type { TabCoordinator } from "../sync/tabCoordinator.ts";
import type { UploadTasks } from "./uploadTasks.ts";

/** Interval for collecting rejections before a check, because rejections arrive in batches. */
const REJECTION_DEBOUNCE_MS = 500;

export class EmbeddingResumer {
  readonly #context: AccountContext;
  readonly #sync: TabCoordinator;
  readonly #model: EmbeddingModel;
  readonly #tasks: UploadTasks;
  readonly #holds: FileLocks;
  readonly #stops = new Map<string, AbortController>();
  #queue: Promise<void> = Promise.resolve();

  constructor(
    context: AccountContext,
    sync: TabCoordinator,
    embedding: EmbeddingModel,
    tasks: UploadTasks,
    holds: FileLocks,
  ) {
    this.#context = context;
    this.#sync = sync;
    this.#model = embedding;
    this.#tasks = tasks;
    this.#holds = holds;
  }

  /** Start to resume the embedding of documents that neither an upload, another tab nor the server is embedding. */
  start(): void {
    this.#canResume().subscribe(() => this.resumeAll());
  }

  /** Queue a check for documents whose embedding can be resumed. */
  resumeAll(): void {
    this.#enqueue(() => this.#embedPending());
  }

  /**
   * Embed a document again. Skip the document if another tab is embedding it, so that the queue does not wait for that
   * tab.
   */
  retry(documentId: string): void {
    this.#enqueue(async () => {
      const found = await this.#context.database.documents.findOne(documentId).exec();
      if (!found || !(await this.#holds.tryAcquire(documentId))) return;
      await this.#resume(found.toMutableJSON());
    });
  }

  /**
   * Stop the resumed embedding of a document and keep the vectors so far. Return false if no such embedding is running.
   */
  stop(documentId: string): boolean {
    const stop = this.#stops.get(documentId);
    stop?.abort();
    return stop !== undefined;
  }

  /** Embed a document. The document's text is already stored, so search by words finds it even if embedding fails. */
  async embed(taskId: string, documentId: string, signal: AbortSignal): Promise<EmbedOutcome | "failed"> {
    const tell = (done: number, of: number) => this.#tasks.update(taskId, { stage: "embedding", done, of });
    try {
      const outcome = await embedDocument(this.#context, this.#model, documentId, tell, signal);
      const found = await this.#context.database.documents.findOne(documentId).exec();
      if (!found) this.#tasks.update(taskId, { stage: "cancelled", documentId: null });
      else {
        // After `later`, the document stays pending, and embedding is resumed when the model is available.
        if (outcome !== "later") await editRow<DocumentDoc>(found, withReadyStatus);
        this.#tasks.update(taskId, { stage: "done" });
      }
      return outcome;
    } catch (error) {
      if (signal.aborted) throw error;
      this.#tasks.update(taskId, {
        stage: "failed",
        code: isQuotaExceeded(error) ? "EMBEDDING_FULL" : "EMBEDDING",
      });
      return "failed";
    }
  }

  /** Emit when there may be documents whose embedding can be resumed. */
  #canResume(): Observable<unknown> {
    const { isAway$ } = this.#sync;
    const refused$ = this.#context.database.documents.$.pipe(
      filter(({ documentData: row }) => isRejectedWhilePending(row)),
      auditTime(REJECTION_DEBOUNCE_MS),
    );
    const model$ = this.#model.state$.pipe(
      map(({ kind }) => kind),
      distinctUntilChanged(),
      filter((kind) => kind === "ready"),
    );
    return isAway$.pipe(
      first(),
      switchMap(() => merge(isAway$, refused$, model$)),
    );
  }

  async #embedPending(): Promise<void> {
    const left = await documentsToEmbed(this.#context, !isAway(this.#sync.summary$.value.kind));
    for (const document of left) {
      if ((await this.#hasUpload(document)) || !(await this.#holds.tryAcquire(document.id))) continue;
      if ((await this.#resume(document)) === "later") return; // no model for the remaining documents either
    }
  }

  /**
   * Return whether the document has an upload that is running, or that failed or was cancelled and waits for the user.
   */
  async #hasUpload({ id }: DocumentDoc): Promise<boolean> {
    const stage = this.#tasks.find(id)?.stage;
    if (stage && stage !== "done") return true;
    return (await this.#context.device.files.get(id)) !== undefined;
  }

  /** Embed a document whose lock this tab holds, then release the lock. */
  async #resume({ id, filename: name, size, originSessionId, chunkCount: of }: DocumentDoc) {
    const stop = new AbortController();
    this.#stops.set(id, stop);
    const embedding = { stage: "embedding", documentId: id, done: 0, of } as const;
    this.#tasks.add({ id, name, size, sessionId: originSessionId || null }, embedding);
    try {
      return await this.embed(id, id, stop.signal);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
      return "stopped";
    } finally {
      this.#stops.delete(id);
      await this.#holds.release(id); // the next task in the queue may need this lock
    }
  }

  #enqueue(work: () => Promise<void>): void {
    const unlessClosed = async () => {
      if (!this.#context.database.closed) await work(); // the app may have been closed while `work` was queued
    };
    this.#queue = this.#queue.then(unlessClosed).catch((error: unknown) => console.error(error));
  }
}

function withReadyStatus(row: DocumentDoc): DocumentDoc {
  return row.status === "pending" ? { ...row, status: "ready", updatedAt: now() } : row;
}

function isRejectedWhilePending({ syncError, status, _deleted }: DocumentDoc): boolean {
  return syncError !== undefined && status === "pending" && !_deleted;
}
