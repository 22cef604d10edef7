/** Find chats, documents, projects, facts and memories by words, on this device. */

import type { RxCollection } from "rxdb/plugins/core";
import { foldForMatch, queryWords } from "../../core/text/wordMatch.ts";
import type { AccountDatabase } from "../../storage/accountDatabase.ts";

export interface QuickSearchHit {
  kind: "session" | "document" | "project" | "fact" | "memory";
  id: string;
  title: string;
  detail: string;
}

/** A hit, and its text without case and accents for matching. */
interface IndexedHit extends QuickSearchHit {
  text: string;
}

const MAX_PER_KIND = 6;

export class QuickSearch {
  readonly #kinds: CollectionIndex[];

  constructor({ sessions, documents, projects, facts, memories }: AccountDatabase) {
    this.#kinds = [
      new CollectionIndex(sessions, ({ id, title }) => ({ kind: "session", id, title, detail: "" })),
      new CollectionIndex(documents, ({ id, filename }) => ({
        kind: "document",
        id,
        title: filename,
        detail: "",
      })),
      new CollectionIndex(projects, ({ id, name, description = "" }) => ({
        ...{ kind: "project", id },
        ...{ title: name, detail: description },
      })),
      new CollectionIndex(facts, ({ id, key, value }) => ({ kind: "fact", id, title: key, detail: value })),
      new CollectionIndex(memories, ({ id, text }) => ({ kind: "memory", id, title: text, detail: "" })),
    ];
  }

  /** Return the newest matches of each kind, or the newest rows if the query is empty. */
  async find(query: string): Promise<QuickSearchHit[]> {
    const words = queryWords(query);
    const found = await Promise.all(this.#kinds.map((kind) => kind.entries()));
    return found.flatMap((entries) =>
      entries
        .filter(({ text }) => words.every((word) => text.includes(word)))
        .slice(0, MAX_PER_KIND)
        .map(({ text: _, ...hit }) => hit),
    );
  }
}

/** The searchable rows of one collection. They are read at the first search and again after a change. */
class CollectionIndex {
  readonly #read: () => Promise<IndexedHit[]>;
  #entries: Promise<IndexedHit[]> | undefined;

  constructor(collection: RxCollection, hitOf: (row: any) => QuickSearchHit) {
    this.#read = async () => {
      const rows = await collection.find({ sort: [{ updatedAt: "desc" }] }).exec();
      return rows.map(hitOf).map((hit) => ({ ...hit, text: foldForMatch(`${hit.title} ${hit.detail}`) }));
    };
    collection.$.subscribe(() => (this.#entries = undefined));
  }

  entries(): Promise<IndexedHit[]> {
    return (this.#entries ??= this.#read().catch((error: unknown) => {
      this.#entries = undefined; // the next search retries
      throw error;
    }));
  }
}
