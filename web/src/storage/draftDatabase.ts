/**
 * Database of the unsent text of one account. It is a separate IndexedDB database, so that a rewrite can erase deleted
 * text (see storage/compaction.ts). In Local Storage, deleted text would stay in the browser's files for an unknown
 * time.
 *
 * The page writes drafts itself instead of calling the worker, because a transaction that was committed explicitly
 * survives if the page is closed at that moment.
 */

export interface Draft {
  id: string;
  /** The time of the last change. */
  at: string;
  text: string;
}

const STORE = "drafts";
/**
 * Version of the database: version 1 for Dexie, which copies the database in a rewrite and multiplies version numbers
 * by ten.
 */
const VERSION = 10;

export const draftDatabaseOf = (userId: string) => `vademecum-drafts-${userId}`;

export class DraftDatabase {
  readonly #database: IDBDatabase;
  #isClosed = false;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    // Do not block the removal of the account or the rewrite of its storages. This page will be reloaded.
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
