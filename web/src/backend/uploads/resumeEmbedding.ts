/** Goes on with embedding that was broken off, one document after the other. No upload waits for it. */

import { auditTime, distinctUntilChanged, filter, first, map, merge, switchMap, type Observable } from "rxjs";
import { isFull } from "../../lib/quotaExceeded.ts";
import { edit } from "../../storage/editRow.ts";
import { isAway } from "../../core/sync/syncStatus.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { embedDocument, leftToEmbed, type Outcome } from "./embedDocument.ts";
import type { Embedding } from "../library/embeddingModel.ts";
import type { Holds } from "./fileLocks.ts";
import { now, type House } from "../account/accountContext.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";
import type { Tasks } from "./uploadTasks.ts";

/** Refusals come a batch at a time. */
const SETTLE_MS = 500;

export class Finishing {
  readonly #house: House;
  readonly #syncing: SyncCoordinator;
  readonly #embedding: Embedding;
  readonly #tasks: Tasks;
  readonly #holds: Holds;
  readonly #stops = new Map<string, AbortController>();
  #queue: Promise<void> = Promise.resolve();

  constructor(house: House, syncing: SyncCoordinator, embedding: Embedding, tasks: Tasks, holds: Holds) {
    this.#house = house;
    this.#syncing = syncing;
    this.#embedding = embedding;
    this.#tasks = tasks;
    this.#holds = holds;
  }

  /** From now on it goes on with whatever nobody else does. */
  start(): void {
    this.#mayGoOn().subscribe(() => this.look());
  }

  /** Whether there is something to go on with. */
  look(): void {
    this.#then(() => this.#embedLeft());
  }

  /** Once more, because somebody asks for it. Another tab that is at it is not waited for: others stand behind. */
  again(documentId: string): void {
    this.#then(async () => {
      const found = await this.#house.records.documents.findOne(documentId).exec();
      if (!found || !(await this.#holds.tryTake(documentId))) return;
      await this.#goOn(found.toMutableJSON());
    });
  }

  /** The document stays as it is. False: this is not at it. */
  stop(documentId: string): boolean {
    const stop = this.#stops.get(documentId);
    stop?.abort();
    return stop !== undefined;
  }

  /** The text is safe: whatever comes now, the document stays and is found by its words. */
  async embed(taskId: string, documentId: string, signal: AbortSignal): Promise<Outcome | "failed"> {
    const tell = (done: number, of: number) => this.#tasks.tell(taskId, { done, of });
    try {
      const outcome = await embedDocument(this.#house, this.#embedding, documentId, tell, signal);
      const found = await this.#house.records.documents.findOne(documentId).exec();
      if (!found) this.#tasks.tell(taskId, { stage: "cancelled", documentId: null });
      else {
        // What could not be had now goes on when the model is here.
        if (outcome !== "later") await edit<DocumentDoc>(found, ready);
        this.#tasks.tell(taskId, { stage: "done" });
      }
      return outcome;
    } catch (error) {
      if (signal.aborted) throw error;
      this.#tasks.tell(taskId, { stage: "failed", code: isFull(error) ? "EMBEDDING_FULL" : "EMBEDDING" });
      return "failed";
    }
  }

  /** Tells when there may be something to embed that nobody else goes on with. */
  #mayGoOn(): Observable<unknown> {
    const { isAway$ } = this.#syncing;
    const refused$ = this.#house.records.documents.$.pipe(
      filter(({ documentData: row }) => isRefused(row)),
      auditTime(SETTLE_MS),
    );
    const model$ = this.#embedding.state$.pipe(
      map(({ kind }) => kind),
      distinctUntilChanged(),
      filter((kind) => kind === "ready"),
    );
    return isAway$.pipe(
      first(),
      switchMap(() => merge(isAway$, refused$, model$)),
    );
  }

  async #embedLeft(): Promise<void> {
    const left = await leftToEmbed(this.#house, !isAway(this.#syncing.summary$.value.kind));
    for (const document of left) {
      if ((await this.#isTaken(document)) || !(await this.#holds.tryTake(document.id))) continue;
      if ((await this.#goOn(document)) === "later") return; // nor could the model be had for the next
    }
  }

  /** Its file is on its way, and its upload embeds it; or it failed or was stopped, and goes on when somebody asks. */
  async #isTaken({ id }: DocumentDoc): Promise<boolean> {
    const stage = this.#tasks.of(id)?.stage;
    if (stage && stage !== "done") return true;
    return (await this.#house.device.files.get(id)) !== undefined;
  }

  /** Its lock is held. */
  async #goOn({ id, filename: name, size, originSessionId, chunkCount: of }: DocumentDoc) {
    const stop = new AbortController();
    this.#stops.set(id, stop);
    const embedding = { stage: "embedding", documentId: id, of } as const;
    this.#tasks.begin({ id, name, size, sessionId: originSessionId || null }, embedding);
    try {
      return await this.embed(id, id, stop.signal);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
      return "stopped";
    } finally {
      this.#stops.delete(id);
      await this.#holds.release(id); // whoever is next in the queue may want it again
    }
  }

  #then(work: () => Promise<void>): void {
    const unlessClosed = async () => {
      if (!this.#house.records.closed) await work(); // the app may have been left while it stood in the queue
    };
    this.#queue = this.#queue.then(unlessClosed).catch((error: unknown) => console.error(error));
  }
}

function ready(row: DocumentDoc): DocumentDoc {
  return row.status === "pending" ? { ...row, status: "ready", updatedAt: now() } : row;
}

function isRefused({ syncError, status, _deleted }: DocumentDoc): boolean {
  return syncError !== undefined && status === "pending" && !_deleted;
}
