/**
 * The unsent texts of an account. They are stored in IndexedDB, and also kept in memory, so that a form can show its
 * draft at once.
 */

import { channelNames } from "../lib/locks.ts";
import { DraftDatabase, type Draft } from "../storage/draftDatabase.ts";

/**
 * Return the key prefix of an earlier version's drafts. Those are in Local Storage under the key `draft <user> <id>`;
 * the value is the time, a space and the text.
 */
const oldPrefixOf = (userId: string) => `draft ${userId} `;

type Change = { put: Draft } | { delete: string };

export class Drafts {
  readonly #database: DraftDatabase;
  readonly #drafts: Map<string, Draft>;
  readonly #otherTabs: BroadcastChannel;

  private constructor(userId: string, database: DraftDatabase, drafts: readonly Draft[]) {
    this.#database = database;
    this.#drafts = new Map(drafts.map((draft) => [draft.id, draft]));
    this.#otherTabs = new BroadcastChannel(channelNames.drafts(userId));
    this.#otherTabs.onmessage = ({ data }: MessageEvent<Change>) => this.#apply(data);
  }

  static async open(userId: string): Promise<Drafts> {
    const database = await DraftDatabase.open(userId);
    const drafts = new Drafts(userId, database, await database.all());
    drafts.#moveFromLocalStorage(userId);
    return drafts;
  }

  ids(): string[] {
    return [...this.#drafts.keys()];
  }

  get(id: string): Draft | undefined {
    return this.#drafts.get(id);
  }

  /** Return the text of a draft, or "" if there is none or it was written before `forgottenAt`. */
  text(id: string, forgottenAt = ""): string {
    const draft = this.#drafts.get(id);
    return draft && draft.at >= forgottenAt ? draft.text : "";
  }

  put(draft: Draft): void {
    this.#database.put(draft);
    this.#share({ put: draft });
  }

  delete(id: string): void {
    if (!this.#drafts.has(id)) return;
    this.#database.delete(id);
    this.#share({ delete: id });
  }

  deleteBefore(time: string): void {
    for (const { id, at } of [...this.#drafts.values()]) if (at < time) this.delete(id);
  }

  #share(change: Change): void {
    this.#apply(change);
    this.#otherTabs.postMessage(change);
  }

  #apply(change: Change): void {
    if ("put" in change) this.#drafts.set(change.put.id, change.put);
    else this.#drafts.delete(change.delete);
  }

  #moveFromLocalStorage(userId: string): void {
    for (const key of Object.keys(localStorage)) {
      if (!key.startsWith(oldPrefixOf(userId))) continue;
      const [at = "", ...words] = localStorage.getItem(key)!.split(" ");
      this.put({ id: key.slice(oldPrefixOf(userId).length), at, text: words.join(" ") });
      localStorage.removeItem(key);
    }
  }
}

/** Remove drafts of an account that an earlier version of the app stored in Local Storage. */
export function removeOldDrafts(userId: string): void {
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith(oldPrefixOf(userId))) localStorage.removeItem(key);
  }
}
