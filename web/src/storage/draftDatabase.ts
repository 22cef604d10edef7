/**
 * Unsent text of one account: an IndexedDB database of its own, which a rewrite includes (see storage/compaction.ts).
 * In Local Storage the browser would keep deleted text in its files for an unknown time.
 *
 * The page writes it without the worker, because a transaction that is committed explicitly survives a page that is
 * closed in the same moment.
 */

export interface Draft {
  id: string;
  /** The time of the last change. */
  at: string;
  text: string;
}

const STORE = "drafts";
/** Dexie, which copies the database, counts in tenths of a version. */
const VERSION = 10;

export const draftDatabaseOf = (userId: string) => `vademecum-drafts-${userId}`;

export class DraftDatabase {
  readonly #database: IDBDatabase;
  #isClosed = false;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    // The account is being removed or rewritten, so this page is about to be left.
    database.onversionchange = () => this.#close();
    database.onclose = () => this.#close();
  }

  static open(userId: string): Promise<DraftDatabase> {
    return new Promise((resolve, reject) => {
      const opening = indexedDB.open(draftDatabaseOf(userId), VERSION);
      opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: "id" });
      opening.onsuccess = () => resolve(new DraftDatabase(opening.result));
      opening.onerror = () => reject(opening.error);
    });
  }

  all(): Promise<Draft[]> {
    return new Promise((resolve, reject) => {
      const reading = this.#database.transaction(STORE).objectStore(STORE).getAll();
      reading.onsuccess = () => resolve(reading.result);
      reading.onerror = () => reject(reading.error);
    });
  }

  put(draft: Draft): void {
    this.#write((store) => store.put(draft));
  }

  delete(id: string): void {
    this.#write((store) => store.delete(id));
  }

  #write(change: (store: IDBObjectStore) => void): void {
    if (this.#isClosed) return;
    const transaction = this.#database.transaction(STORE, "readwrite");
    transaction.onabort = () => console.error(transaction.error); // for instance because the disk is full
    change(transaction.objectStore(STORE));
    transaction.commit();
  }

  #close(): void {
    this.#isClosed = true;
    this.#database.close();
  }
}
