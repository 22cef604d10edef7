/** What this device alone knows and never sends: who was here, which files wait, which words lost a conflict. */

import Dexie, { liveQuery, type EntityTable } from "dexie";
import type { Manifest } from "../core/schema/modelManifest.ts";

export interface DeviceAccount {
  userId: string;
  email: string;
  tier: "FREE" | "JIVE" | "JIGGA";
  limits: Limits;
  usedAt: string;
  /** Somebody wants to see its rows next, whoever the server says is here. */
  isWanted?: boolean;
  /** What of the limits was taken when the server was last asked. */
  usage?: Usage;
  /** Of the server's data; another one means that it was restored (see engines/sync). */
  epoch?: string;
  /** Drawn at each start from zero: RxDB keeps its checkpoints by a name that holds it. */
  round?: string;
  /** The last "forget everything" that was carried out here, too. */
  forgottenAt?: string;
  /** The server's model when it was last asked; null: it had none. */
  model?: (Manifest & { id: string }) | null;
  /** Whether an assistant was set up on the server when it was last asked, and its name. */
  assistant?: { available: boolean; model: string | null };
  /** When the server was last known to have all of this device and the other way round. */
  syncedAt?: string;
  /** Deleted text that is still on the disk; null or absent: none. */
  leftover?: DeletedText | null;
}

/** Text that was deleted and stays in the browser's files until the storages that had it are rewritten. */
export interface DeletedText {
  since: string;
  deletes: number;
  /** Names of RxDB storages: collections and their replication metadata. */
  storages: string[];
  /** Everything was forgotten: do not wait until it is due. */
  atOnce?: boolean;
  /** How often the pages were asked to reload for the rewrite, and when they may be asked again. */
  asked?: { times: number; nextAt: string } | null;
}

/** As `GET /v1/me` says them: counts, and bytes. */
export interface Limits {
  documents: number;
  fileBytes: number;
  storageBytes: number;
  rowBytes: number;
  authoritative: boolean;
  searchesDocuments: boolean;
}

/** As the server counts, at that time. */
export interface Usage {
  documents: number;
  bytes: number;
  at: string;
}

/** A file that was chosen and is not stored as a document yet. It outlives the page. */
export interface WaitingFile {
  id: string;
  userId: string;
  sessionId: string | null;
  name: string;
  content: Blob;
  addedAt: string;
}

/** What a conflict took away: the words of this device that gave way to those of another, or to a delete there. */
export interface ConflictLoser {
  id: string;
  userId: string;
  collection: string;
  rowId: string;
  fields: Record<string, unknown>;
  /** Of those without `gone` when it was kept; of the others when their row was made (see backend/sync/conflictLosers.ts). */
  at: string;
  /** Another device had deleted their row, or what it belongs to before the server ever had it. */
  gone?: "changed" | "unsent";
}

/** A question that waits for the assistant: it is asked when the server is back. */
export interface DeferredQuestion {
  episodeId: string;
  userId: string;
  at: string;
}

/** A question that has no answer yet, and the tab that is at it. */
interface UnansweredQuestion {
  episodeId: string;
  userId: string;
  at: string;
  tab: string;
}

/** A turn that came out of an export, with what was made of it: the server is told so when it goes up. */
export interface ImportedTurn {
  /** See `importedId`. */
  id: string;
  userId: string;
  at: string;
}

function watchQuery<T>(query: () => Promise<T>, listener: (result: T) => void): () => void {
  const subscription = liveQuery(query).subscribe(listener);
  return () => subscription.unsubscribe();
}

export class DeviceDatabase extends Dexie {
  accounts!: EntityTable<DeviceAccount, "userId">;
  files!: EntityTable<WaitingFile, "id">;
  lost!: EntityTable<ConflictLoser, "id">;
  later!: EntityTable<DeferredQuestion, "episodeId">;
  asked!: EntityTable<UnansweredQuestion, "episodeId">;
  imported!: EntityTable<ImportedTurn, "id">;

  constructor() {
    super("vademecum");
    this.version(3).stores({
      accounts: "userId, usedAt",
      files: "id, userId",
      lost: "id, userId, rowId",
      later: "episodeId, userId",
      asked: "episodeId, userId",
      imported: "id, userId",
    });
  }

  /**
   * Tells each time that it is closed under the app: its data is cleared, or only wanted by a newer version in another
   * tab. It is opened anew when it is next asked.
   */
  watchClosed(listener: () => void): void {
    this.on("close", listener);
  }

  /** Who used this device last. */
  async lastAccount(): Promise<DeviceAccount | undefined> {
    return this.accounts.orderBy("usedAt").last();
  }

  /** What conflicts took from an account, newest first, at once and again after every change. */
  watchConflictLosers(userId: string, listener: (losers: ConflictLoser[]) => void): () => void {
    return watchQuery(() => this.lost.where({ userId }).reverse().sortBy("at"), listener);
  }

  /** What is known of an account, at once and again after every change, also by another tab. */
  watchAccount(userId: string, listener: (account: DeviceAccount) => void): () => void {
    return watchQuery(
      () => this.accounts.get(userId),
      (account) => account && listener(account),
    );
  }

  /** The ids of an account's files that wait, at once and again after every change, also by another tab. */
  watchFiles(userId: string, listener: (ids: string[]) => void): () => void {
    return watchQuery(() => this.files.where({ userId }).primaryKeys(), listener);
  }

  /** What conflicts took from rows that are deleted by now. `here`: by this device, whose owner wants none of it. */
  async deleteConflictLosers(
    userId: string,
    collection: string,
    rowIds: string[],
    deletedHere: boolean,
  ): Promise<void> {
    const losers = this.lost
      .where("rowId")
      .anyOf(rowIds)
      .filter((lost) => lost.userId === userId && lost.collection === collection);
    await losers.filter(({ gone }) => deletedHere || !gone).delete();
  }

  /** What of an account waits or was kept here since before this moment: everything was forgotten then. */
  async deleteBefore(userId: string, moment: string): Promise<void> {
    await this.deleteAccount(userId, ({ at, addedAt = at }) => addedAt < moment); // an account has neither
  }

  /** Everything of one account but its rows, which are a database of their own (see engines/records). */
  async deleteAccount(userId: string, matches = (_row: any) => true): Promise<void> {
    await this.transaction("rw", this.tables, () =>
      Promise.all(this.tables.map((table) => table.where({ userId }).filter(matches).delete())),
    );
  }
}
