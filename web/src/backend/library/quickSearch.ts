/** Finds conversations, documents, projects and what is remembered by their words, on this device. */

import type { RxCollection } from "rxdb/plugins/core";
import { folded, wordsOf } from "../../core/text/wordMatch.ts";
import type { Records } from "../../storage/accountDatabase.ts";

export interface QuickSearchHit {
  kind: "session" | "document" | "project" | "fact" | "memory";
  id: string;
  title: string;
  detail: string;
}

/** What can be found, and the words of it as they are compared. */
interface Entry extends QuickSearchHit {
  text: string;
}

const MOST = 6; // of each kind

export class QuickSearch {
  readonly #kinds: Kind[];

  constructor({ sessions, documents, projects, facts, memories }: Records) {
    this.#kinds = [
      new Kind(sessions, ({ id, title }) => ({ kind: "session", id, title, detail: "" })),
      new Kind(documents, ({ id, filename }) => ({ kind: "document", id, title: filename, detail: "" })),
      new Kind(projects, ({ id, name, description = "" }) => ({
        ...{ kind: "project", id },
        ...{ title: name, detail: description },
      })),
      new Kind(facts, ({ id, key, value }) => ({ kind: "fact", id, title: key, detail: value })),
      new Kind(memories, ({ id, text }) => ({ kind: "memory", id, title: text, detail: "" })),
    ];
  }

  /** Newest first; with no words to look for, the newest of each kind. */
  async find(query: string): Promise<QuickSearchHit[]> {
    const words = wordsOf(query);
    const found = await Promise.all(this.#kinds.map((kind) => kind.entries()));
    return found.flatMap((entries) =>
      entries
        .filter(({ text }) => words.every((word) => text.includes(word)))
        .slice(0, MOST)
        .map(({ text: _, ...hit }) => hit),
    );
  }
}

/** The rows of one collection as they are found: read when they are first wanted, and again after a change. */
class Kind {
  readonly #read: () => Promise<Entry[]>;
  #entries: Promise<Entry[]> | undefined;

  constructor(collection: RxCollection, hitOf: (row: any) => QuickSearchHit) {
    this.#read = async () => {
      const rows = await collection.find({ sort: [{ updatedAt: "desc" }] }).exec();
      return rows.map(hitOf).map((hit) => ({ ...hit, text: folded(`${hit.title} ${hit.detail}`) }));
    };
    collection.$.subscribe(() => (this.#entries = undefined));
  }

  entries(): Promise<Entry[]> {
    return (this.#entries ??= this.#read().catch((error: unknown) => {
      this.#entries = undefined; // to be tried again
      throw error;
    }));
  }
}
