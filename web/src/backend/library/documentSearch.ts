/**
 * Search on this device: the passages of the documents that a session has borrowed, and of no others.
 *
 * A document's blocks are read and decoded when it is first asked about, and kept until one of them changes, or until
 * there is no room and others were asked about since.
 */

import { Passages, toBlock, type Found } from "../../core/documents/passageIndex.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { Embedding } from "./embeddingModel.ts";
import { blocksOf } from "./documents.ts";
import type { House } from "../account/accountContext.ts";

/** So many chunks are kept when nothing is asked: with their vectors and words about 100 MB. */
const CHUNKS_MOST = 20_000;

/** What a passage says of its document, and what changes with its text. */
const SHOWN = ["filename", "contentHash", "chunkCount", "status"] as const;

/** Vectors of two models are never compared: another model, another index. */
interface Index {
  /** Its hash; empty: there is none, and words alone find. */
  readonly model: string;
  readonly passages: Passages;
}

interface Held {
  reading: Promise<void>;
  chunks: number;
  /** Some of it has changed since: it is read again at the next question. */
  stale: boolean;
}

export class Searcher {
  readonly #house: House;
  readonly #embedding: Embedding;
  readonly #most: number;
  #index: Index = { model: "", passages: new Passages(0) };
  /** What is in memory, least recently asked about first. */
  readonly #held = new Map<string, Held>();
  /** The documents of each question that is being answered: none of them goes before it is. */
  readonly #asked = new Set<readonly string[]>();

  constructor(house: House, embedding: Embedding, most = CHUNKS_MOST) {
    this.#house = house;
    this.#embedding = embedding;
    this.#most = most;
    house.records.vectorEmbeddings.$.subscribe(({ documentData }) => this.#changed(documentData.documentId));
    house.records.documents.$.subscribe(({ documentId, documentData, previousDocumentData }) => {
      if (documentData._deleted) this.#drop(documentId);
      else if (SHOWN.some((field) => previousDocumentData?.[field] !== documentData[field]))
        this.#changed(documentId); // and not when it was merely used or borrowed
    });
  }

  /** How many chunks are in memory. */
  get chunks(): number {
    return [...this.#held.values()].reduce((sum, { chunks }) => sum + chunks, 0);
  }

  async search(query: string, sessionId: string, k: number): Promise<Found> {
    return this.#about(sessionId, async (documents, { model, passages }) => {
      const embedder = documents.length ? await this.#embedding.ifHere() : null;
      const fits = embedder?.manifest.hash === model;
      const lost = (error: unknown) => this.#embedding.lost(embedder!, error);
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
    await this.#about(sessionId, async () => {});
  }

  /** What `answer` makes of the session's documents while they are in memory, made anew if the model was replaced. */
  async #about<T>(
    sessionId: string,
    answer: (documents: DocumentDoc[], index: Index) => Promise<T>,
  ): Promise<T> {
    await this.#useModel();
    const index = this.#index;
    const all = (await this.#house.records.documents.find().exec()).map((row) => row.toMutableJSON());
    const borrowed = all.filter((row) => row.activeSessions.includes(sessionId));
    const ids = borrowed.map(({ id }) => id);
    this.#asked.add(ids);
    try {
      await Promise.all(borrowed.map((document) => this.#hold(document)));
      const answered = await answer(borrowed, index);
      if (this.#index === index) return answered;
    } finally {
      this.#asked.delete(ids);
      this.#makeRoom();
    }
    return this.#about(sessionId, answer);
  }

  async #useModel(): Promise<void> {
    const { account, device } = this.#house;
    const model = (await device.accounts.get(account.userId))?.model;
    if (!model || model.hash === this.#index.model) return;
    this.#index = { model: model.hash, passages: new Passages(model.dims) };
    this.#held.clear();
  }

  async #hold(document: DocumentDoc): Promise<void> {
    const before = this.#held.get(document.id);
    let held: Held | undefined = before && !before.stale ? before : this.#read(document);
    this.#held.delete(document.id);
    this.#held.set(document.id, held); // the most recently asked about
    // What another question began anew meanwhile is what is kept: this one's reading was thrown away.
    for (let awaited: Held | undefined; held && held !== awaited; held = this.#held.get(document.id)) {
      awaited = held;
      await held.reading;
    }
  }

  #read(document: DocumentDoc): Held {
    const read = async () => {
      const rows = await blocksOf(this.#house, document.id);
      if (this.#held.get(document.id) !== held) return; // deleted, or begun anew
      const { model, passages } = this.#index;
      const blocks = rows.map((row) => toBlock(row._data, model));
      held.chunks = blocks.reduce((sum, { chunks }) => sum + chunks.length, 0);
      passages.add(document, blocks);
    };
    const held: Held = { reading: Promise.resolve(), chunks: 0, stale: false };
    held.reading = read().catch((error: unknown) => {
      held.stale = true; // to be read again
      throw error;
    });
    return held;
  }

  /** Until it is read again, a question that is under way finds what there was. */
  #changed(documentId: string): void {
    const held = this.#held.get(documentId);
    if (held) held.stale = true;
  }

  #drop(documentId: string): void {
    this.#held.delete(documentId);
    this.#index.passages.remove(documentId);
  }

  #makeRoom(): void {
    const asked = new Set([...this.#asked].flat());
    let chunks = this.chunks;
    for (const [id, held] of this.#held) {
      if (chunks <= this.#most) return;
      if (asked.has(id)) continue;
      chunks -= held.chunks;
      this.#drop(id);
    }
  }
}
