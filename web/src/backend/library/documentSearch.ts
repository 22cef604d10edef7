/**
 * Search the documents that a session has borrowed, on this device.
 *
 * The first search that needs a document reads and decodes its blocks and caches them. A change of the document or of
 * its blocks makes the cached blocks stale. When the cache is full, the least recently used document is evicted.
 */

import {
  PassageIndex,
  toBlock,
  type Hit,
  type PassageSearchResult,
} from "../../core/documents/passageIndex.ts";
import { commonShare, LANGUAGE_SAMPLE, languageShare, VECTOR_WEIGHT } from "../../core/text/fusion.ts";
import { isMultilingual } from "../../core/schema/modelManifest.ts";
import type { Embedder } from "../../embedder/embedder.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { EmbeddingModel } from "./embeddingModel.ts";
import { blocksOf } from "./documents.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** Capacity of the cache in chunks. With their vectors and words, they take about 100 MB. */
const MAX_CHUNKS = 20_000;

/**
 * Fields of a document that appear in its passages or change with its text. A change in one of them makes the cached
 * document stale.
 */
const INDEXED_FIELDS = ["filename", "contentHash", "chunkCount", "status"] as const;

/**
 * The passage index of one model. Vectors of different models cannot be compared, so each model needs its own index.
 */
interface Index {
  /** Hash of the model. Empty if no model is known; the search then uses words only. */
  readonly model: string;
  readonly passages: PassageIndex;
}

interface CachedDocument {
  reading: Promise<void>;
  chunks: number;
  /** Whether the document has changed, so that the next search reads it again. */
  stale: boolean;
}

/**
 * Return the vector of a question and the weight of meaning for it, which depends on the languages of the question and
 * its passages. `findByWords` returns the passages; it is called if the weight depends on them.
 */
async function embedQuestion(embedder: Embedder, query: string, findByWords: () => readonly Hit[]) {
  const { chunkWeight: vectorWeight = VECTOR_WEIGHT } = embedder.manifest.thresholds ?? {};
  // Both requests are sent at once: after the vector, the worker may begin a passage, and the count would wait for it.
  const [[tokens], vector] = await Promise.all([embedder.countTokens([query]), embedder.query(query)]);
  const multilingual = isMultilingual(embedder.manifest);
  const question = languageShare(query, tokens!);
  if (multilingual || question === 1) return { vector, vectorWeight, isMultilingual: multilingual };
  const wordHits = findByWords();
  const texts = wordHits.slice(0, LANGUAGE_SAMPLE).map(({ held, row }) => held.rows[row]!.chunk.text);
  const counts = await embedder.countTokens(texts);
  const shares = texts.map((text, n) => languageShare(text, counts[n]!));
  const share = shares.length ? commonShare(question, shares) : 1;
  return { vector, vectorWeight: vectorWeight * share, wordHits };
}

export class DocumentSearch {
  readonly #context: AccountContext;
  readonly #model: EmbeddingModel;
  readonly #maxChunks: number;
  #index: Index = { model: "", passages: new PassageIndex(0) };
  /** Cached documents by id, least recently used first. */
  readonly #cache = new Map<string, CachedDocument>();
  /** The document ids of each running search. The search needs these documents, so they are not evicted. */
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
        this.#markStale(documentId); // other changes, such as borrowing, do not affect passages
    });
  }

  /** Number of cached chunks. */
  get chunks(): number {
    return [...this.#cache.values()].reduce((sum, { chunks }) => sum + chunks, 0);
  }

  async search(query: string, sessionId: string, k: number): Promise<PassageSearchResult> {
    return this.#withDocuments(sessionId, async (documents, { model, passages }) => {
      const embedder = documents.length ? await this.#model.embedderIfDownloaded() : null;
      const fits = embedder?.manifest.hash === model;
      const lost = (error: unknown) => this.#model.discard(embedder!, error);
      const ids = documents.map(({ id }) => id);
      const findByWords = () => passages.byWords(query, ids, k);
      const asked = embedder && fits ? await embedQuestion(embedder, query, findByWords).catch(lost) : null;
      return {
        results: passages.search(query, asked?.vector ?? null, ids, k, asked ?? {}),
        searched: documents.map(({ filename }) => filename),
        byMeaning: asked !== null,
      };
    });
  }

  /** Load the documents of a session before its first search. */
  async prepare(sessionId: string): Promise<void> {
    await this.#withDocuments(sessionId, async () => {});
  }

  /** Run `answer` while the session's documents are cached. If the model changes during the run, run `answer` again. */
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
    this.#cache.set(document.id, held); // move to the end, as the most recently used
    // If another search starts to read the document again during this wait, wait for that reading, too.
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
      if (this.#cache.get(document.id) !== held) return; // the document was evicted, or a later search reads it again
      const { model, passages } = this.#index;
      const blocks = rows.map((row) => toBlock(row._data, model));
      held.chunks = blocks.reduce((sum, { chunks }) => sum + chunks.length, 0);
      passages.add(document, blocks);
    };
    const held: CachedDocument = { reading: Promise.resolve(), chunks: 0, stale: false };
    held.reading = read().catch((error: unknown) => {
      held.stale = true; // the next search reads the document again
      throw error;
    });
    return held;
  }

  /** Mark a document as stale. Searches that are running still use its old text. */
  #markStale(documentId: string): void {
    const held = this.#cache.get(documentId);
    if (held) held.stale = true;
  }

  #evict(documentId: string): void {
    this.#cache.delete(documentId);
    this.#index.passages.remove(documentId);
  }

  #evictUnused(): void {
    const idsInUse = new Set([...this.#inUse].flat());
    let chunks = this.chunks;
    for (const [id, held] of this.#cache) {
      if (chunks <= this.#maxChunks) return;
      if (idsInUse.has(id)) continue;
      chunks -= held.chunks;
      this.#evict(id);
    }
  }
}
