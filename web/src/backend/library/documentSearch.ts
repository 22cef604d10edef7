/**
 * Search on this device: the passages of the documents that a session has borrowed, and of no others.
 *
 * A document's blocks are read and decoded when it is first asked about, and kept until one of them changes, or until
 * there is no room and others were asked about since.
 */

import { Passages, toBlock, type Found } from "../../core/documents/passageIndex.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { EmbeddingModel } from "./embeddingModel.ts";
import { readBlocks } from "./documents.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** So many chunks are kept when nothing is asked: with their vectors and words about 100 MB. */
const MAX_CHUNKS = 20_000;

/** What a passage says of its document, and what changes with its text. */
const RESULT_FIELDS = ["filename", "contentHash", "chunkCount", "status"] as const;

/** Vectors of two models are never compared: another model, another index. */
interface Index {
  /** Its hash; empty: there is none, and words alone find. */
  readonly model: string;
  readonly passages: Passages;
}

interface LoadedDocument {
  reading: Promise<void>;
  chunks: number;
  /** Some of it has changed since: it is read again at the next question. */
  isStale: boolean;
}

export class DocumentSearch {
  readonly #context: AccountContext;
  readonly #embedding: EmbeddingModel;
  readonly #maxChunks: number;
  #index: Index = { model: "", passages: new Passages(0) };
  /** What is in memory, least recently asked about first. */
  readonly #loaded = new Map<string, LoadedDocument>();
  /** The documents of each question that is being answered: none of them goes before it is. */
  readonly #inUse = new Set<readonly string[]>();

  constructor(context: AccountContext, embedding: EmbeddingModel, most = MAX_CHUNKS) {
    this.#context = context;
    this.#embedding = embedding;
    this.#maxChunks = most;
    context.database.vectorEmbeddings.$.subscribe(({ documentData }) =>
      this.#markStale(documentData.documentId),
    );
    context.database.documents.$.subscribe(({ documentId, documentData, previousDocumentData }) => {
      if (documentData._deleted) this.#evict(documentId);
      else if (RESULT_FIELDS.some((field) => previousDocumentData?.[field] !== documentData[field]))
        this.#markStale(documentId); // and not when it was merely used or borrowed
    });
  }

  /** How many chunks are in memory. */
  get chunks(): number {
    return [...this.#loaded.values()].reduce((sum, { chunks }) => sum + chunks, 0);
  }

  async search(query: string, sessionId: string, k: number): Promise<Found> {
    return this.#withDocuments(sessionId, async (documents, { model, passages }) => {
      const embedder = documents.length ? await this.#embedding.embedderIfDownloaded() : null;
      const fits = embedder?.manifest.hash === model;
      const lost = (error: unknown) => this.#embedding.reportLost(embedder!, error);
      const vector = embedder && fits ? await embedder.query(query).catch(lost) : null;
      const ids = documents.map(({ id }) => id);
      return {
        results: passages.search(query, vector, ids, k),
        searched: documents.map(({ filename }) => filename),
        byMeaning: vector !== null,
      };
    });
  }

  /** Reads the documents that the session has borrowed: the first question need not wait for it. */
  async preload(sessionId: string): Promise<void> {
    await this.#withDocuments(sessionId, async () => {});
  }

  /** What `answer` makes of the session's documents while they are in memory, made anew if the model was replaced. */
  async #withDocuments<T>(
    sessionId: string,
    answer: (documents: DocumentDoc[], index: Index) => Promise<T>,
  ): Promise<T> {
    await this.#useModel();
    const index = this.#index;
    const all = (await this.#context.database.documents.find().exec()).map((row) => row.toMutableJSON());
    const borrowed = all.filter((row) => row.activeSessions.includes(sessionId));
    const ids = borrowed.map(({ id }) => id);
    this.#inUse.add(ids);
    try {
      await Promise.all(borrowed.map((document) => this.#load(document)));
      const answered = await answer(borrowed, index);
      if (this.#index === index) return answered;
    } finally {
      this.#inUse.delete(ids);
      this.#evictLeastRecent();
    }
    return this.#withDocuments(sessionId, answer);
  }

  async #useModel(): Promise<void> {
    const { account, device } = this.#context;
    const model = (await device.accounts.get(account.userId))?.model;
    if (!model || model.hash === this.#index.model) return;
    this.#index = { model: model.hash, passages: new Passages(model.dims) };
    this.#loaded.clear();
  }

  async #load(document: DocumentDoc): Promise<void> {
    const existing = this.#loaded.get(document.id);
    let loaded: LoadedDocument | undefined = existing && !existing.isStale ? existing : this.#read(document);
    this.#loaded.delete(document.id);
    this.#loaded.set(document.id, loaded); // the most recently asked about
    // What another question began anew meanwhile is what is kept: this one's reading was thrown away.
    for (
      let awaited: LoadedDocument | undefined;
      loaded && loaded !== awaited;
      loaded = this.#loaded.get(document.id)
    ) {
      awaited = loaded;
      await loaded.reading;
    }
  }

  #read(document: DocumentDoc): LoadedDocument {
    const read = async () => {
      const rows = await readBlocks(this.#context, document.id);
      if (this.#loaded.get(document.id) !== loaded) return; // deleted, or begun anew
      const { model, passages } = this.#index;
      const blocks = rows.map((row) => toBlock(row._data, model));
      loaded.chunks = blocks.reduce((sum, { chunks }) => sum + chunks.length, 0);
      passages.add(document, blocks);
    };
    const loaded: LoadedDocument = { reading: Promise.resolve(), chunks: 0, isStale: false };
    loaded.reading = read().catch((error: unknown) => {
      loaded.isStale = true; // to be read again
      throw error;
    });
    return loaded;
  }

  /** Until it is read again, a question that is under way finds what there was. */
  #markStale(documentId: string): void {
    const loaded = this.#loaded.get(documentId);
    if (loaded) loaded.isStale = true;
  }

  #evict(documentId: string): void {
    this.#loaded.delete(documentId);
    this.#index.passages.remove(documentId);
  }

  #evictLeastRecent(): void {
    const inUse = new Set([...this.#inUse].flat());
    let chunks = this.chunks;
    for (const [id, loaded] of this.#loaded) {
      if (chunks <= this.#maxChunks) return;
      if (inUse.has(id)) continue;
      chunks -= loaded.chunks;
      this.#evict(id);
    }
  }
}
