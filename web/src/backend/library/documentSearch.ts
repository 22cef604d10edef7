/**
 * Search on this device: the passages of the documents that a session has borrowed, and of no others.
 *
 * A document's blocks are read and decoded when it is first asked about, and kept until one of them changes, or until
 * there is no room and others were asked about since.
 */

import { PassageIndex, toBlock, type PassageSearchResult } from "../../core/documents/passageIndex.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { EmbeddingModel } from "./embeddingModel.ts";
import { blocksOf } from "./documents.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** So many chunks are kept when nothing is asked: with their vectors and words about 100 MB. */
const MAX_CHUNKS = 20_000;

/** What a passage says of its document, and what changes with its text. */
const INDEXED_FIELDS = ["filename", "contentHash", "chunkCount", "status"] as const;

/** Vectors of two models are never compared: another model, another index. */
interface Index {
  /** Its hash; empty: there is none, and words alone find. */
  readonly model: string;
  readonly passages: PassageIndex;
}

interface CachedDocument {
  reading: Promise<void>;
  chunks: number;
  /** Some of it has changed since: it is read again at the next question. */
  stale: boolean;
}

export class DocumentSearch {
  readonly #context: AccountContext;
  readonly #model: EmbeddingModel;
  readonly #maxChunks: number;
  #index: Index = { model: "", passages: new PassageIndex(0) };
  /** What is in memory, least recently asked about first. */
  readonly #cache = new Map<string, CachedDocument>();
  /** The documents of each question that is being answered: none of them goes before it is. */
  readonly #inUse = new Set<readonly string[]>();

  constructor(context: AccountContext, embedding: EmbeddingModel, most = MAX_CHUNKS) {
    this.#context = context;
    this.#model = embedding;
    this.#maxChunks = most;
    context.database.vectorEmbeddings.$.subscribe(({ documentData }) =>
      this.#markStale(documentData.documentId),
    );
    context.database.documents.$.subscribe(({ documentId, documentData, previousDocumentData }) => {
      if (documentData._deleted) this.#evict(documentId);
      else if (INDEXED_FIELDS.some((field) => previousDocumentData?.[field] !== documentData[field]))
        this.#markStale(documentId); // and not when it was merely used or borrowed
    });
  }

  /** How many chunks are in memory. */
  get chunks(): number {
    return [...this.#cache.values()].reduce((sum, { chunks }) => sum + chunks, 0);
  }

  async search(query: string, sessionId: string, k: number): Promise<PassageSearchResult> {
    return this.#withDocuments(sessionId, async (documents, { model, passages }) => {
      const embedder = documents.length ? await this.#model.embedderIfDownloaded() : null;
      const fits = embedder?.manifest.hash === model;
      const lost = (error: unknown) => this.#model.discard(embedder!, error);
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
  async prepare(sessionId: string): Promise<void> {
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
      this.#evictUnused();
    }
    return this.#withDocuments(sessionId, answer);
  }

  async #useModel(): Promise<void> {
    const { account, device } = this.#context;
    const model = (await device.accounts.get(account.userId))?.model;
    if (!model || model.hash === this.#index.model) return;
    this.#index = { model: model.hash, passages: new PassageIndex(model.dims) };
    this.#cache.clear();
  }

  async #load(document: DocumentDoc): Promise<void> {
    const before = this.#cache.get(document.id);
    let held: CachedDocument | undefined = before && !before.stale ? before : this.#read(document);
    this.#cache.delete(document.id);
    this.#cache.set(document.id, held); // the most recently asked about
    // What another question began anew meanwhile is what is kept: this one's reading was thrown away.
    for (
      let awaited: CachedDocument | undefined;
      held && held !== awaited;
      held = this.#cache.get(document.id)
    ) {
      awaited = held;
      await held.reading;
    }
  }

  #read(document: DocumentDoc): CachedDocument {
    const read = async () => {
      const rows = await blocksOf(this.#context, document.id);
      if (this.#cache.get(document.id) !== held) return; // deleted, or begun anew
      const { model, passages } = this.#index;
      const blocks = rows.map((row) => toBlock(row._data, model));
      held.chunks = blocks.reduce((sum, { chunks }) => sum + chunks.length, 0);
      passages.add(document, blocks);
    };
    const held: CachedDocument = { reading: Promise.resolve(), chunks: 0, stale: false };
    held.reading = read().catch((error: unknown) => {
      held.stale = true; // to be read again
      throw error;
    });
    return held;
  }

  /** Until it is read again, a question that is under way finds what there was. */
  #markStale(documentId: string): void {
    const held = this.#cache.get(documentId);
    if (held) held.stale = true;
  }

  #evict(documentId: string): void {
    this.#cache.delete(documentId);
    this.#index.passages.remove(documentId);
  }

  #evictUnused(): void {
    const asked = new Set([...this.#inUse].flat());
    let chunks = this.chunks;
    for (const [id, held] of this.#cache) {
      if (chunks <= this.#maxChunks) return;
      if (asked.has(id)) continue;
      chunks -= held.chunks;
      this.#evict(id);
    }
  }
}
