/**
 * Data that never leaves this device: its accounts, files that are not documents yet, and texts that lost a conflict.
 */

import Dexie, { liveQuery, type EntityTable } from "dexie";
import type { Manifest } from "../core/schema/modelManifest.ts";

export interface DeviceAccount {
  userId: string;
  email: string;
  tier: "FREE" | "JIVE" | "JIGGA";
  limits: Limits;
  /** Share of the best score that passages need in a prompt. Absent until the server has sent it. */
  promptScoreShare?: number;
  usedAt: string;
  /** Whether the user chose to open this account next, regardless of the cookie's account. */
  isWanted?: boolean;
  /** The last known usage. */
  usage?: Usage;
  /**
   * Last known epoch of the server. A different epoch means that the server was restored (see
   * replication.ts).
   */
  epoch?: string;
  /**
   * Random id of the current sync from zero. It is a part of the replication identifier by which RxDB stores
   * checkpoints.
   */
  round?: string;
  /** Time of the last "forget everything" that was applied on this device. */
  forgottenAt?: string;
  /** Last known model of the server. Null if the server had none. */
  model?: (Manifest & { id: string }) | null;
  /** The last known assistant of the server. */
  assistant?: { available: boolean; model: string | null };
  /** Time when this device and the server were last in sync. */
  syncedAt?: string;
  /** Deleted text that is still on the disk. Null or absent if there is none. */
  leftover?: DeletedText | null;
}

/** Deleted text that stays in the browser's files until the storages that contained it are rewritten. */
export interface DeletedText {
  since: string;
  /** Number of deletes, and of edits that replaced text. */
  deletes: number;
  /** Names of RxDB storages: collections and their replication metadata. */
  storages: string[];
  /** Whether to erase without delay, after a "forget everything". */
  atOnce?: boolean;
  /** Number of reload requests to pages for the rewrite, and the earliest time of the next request. */
  asked?: { times: number; nextAt: string } | null;
}

/** Limits of the account from `GET /v1/me`: counts and bytes. */
export interface Limits {
  documents: number;
  fileBytes: number;
  storageBytes: number;
  rowBytes: number;
  authoritative: boolean;
  searchesDocuments: boolean;
}

/** Usage as the server counted it at `at`. */
export interface Usage {
  documents: number;
  bytes: number;
  at: string;
}

/** A file that was added and is not a document yet. It is stored here so that it survives a closed page. */
export interface WaitingFile {
  id: string;
  userId: string;
  sessionId: string | null;
  name: string;
  content: Blob;
  addedAt: string;
}

/** Text of this device that lost a conflict with an edit or a delete of another device. */
export interface ConflictLoser {
  id: string;
  userId: string;
  collection: string;
  rowId: string;
  fields: Record<string, unknown>;
  /**
   * When the text was stored. If `gone` is set: when its row was created, so that a "forget everything" also covers
   * it.
   */
  at: string;
  /**
   * Set if the row was deleted elsewhere: `changed` if the server had the row before, `unsent` if it did not, for
   * instance because the row's parent was deleted.
   */
  gone?: "changed" | "unsent";
}

/** A question that the assistant will answer again once it is available. */
export interface DeferredQuestion {
  episodeId: string;
  userId: string;
  at: string;
}

/** A question without an answer, and the tab that is answering it. */
interface UnansweredQuestion {
  episodeId: string;
  userId: string;
  at: string;
  tab: string;
}

/**
 * A turn that was imported with its memories. A push marks the turn, so that the server does not extract memories from
 * it again.
 */
export interface ImportedTurn {
  /** The result of `importedTurnId`. */
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
   * Call `listener` each time the browser closes the database because its data was cleared or because another tab
   * upgrades it to a newer version. The next query opens the database again.
   */
  watchClosed(listener: () => void): void {
    this.on("close", listener);
  }

  /** Return the account that was used last on this device. */
  async lastAccount(): Promise<DeviceAccount | undefined> {
    return this.accounts.orderBy("usedAt").last();
  }

  /** Call `listener` with the conflict losers of an account, newest first, now and after each change. */
  watchConflictLosers(userId: string, listener: (losers: ConflictLoser[]) => void): () => void {
    return watchQuery(() => this.lost.where({ userId }).reverse().sortBy("at"), listener);
  }

  /** Call `listener` with the account now and after each change, also by another tab. */
  watchAccount(userId: string, listener: (account: DeviceAccount) => void): () => void {
    return watchQuery(
      () => this.accounts.get(userId),
      (account) => account && listener(account),
    );
  }

  /** Call `listener` with the ids of an account's files now and after each change, also by another tab. */
  watchFiles(userId: string, listener: (ids: string[]) => void): () => void {
    return watchQuery(() => this.files.where({ userId }).primaryKeys(), listener);
  }

  /**
   * Delete the conflict losers of deleted rows. If another device deleted the rows, keep losers with `gone`, for the
   * user to see.
   */
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

  /** Delete the data of an account that is older than a "forget everything". */
  async deleteBefore(userId: string, moment: string): Promise<void> {
    // Entries of `accounts` have neither `at` nor `addedAt`, so they are kept.
    await this.deleteAccount(userId, ({ at, addedAt = at }) => addedAt < moment);
  }

  /**
   * Delete the account's entries that match from all tables of this database. The account's rows are in another
   * database and stay.
   */
  async deleteAccount(userId: string, matches = (_row: any) => true): Promise<void> {
    await this.transaction("rw", this.tables, () =>
      Promise.all(this.tables.map((table) => table.where({ userId }).filter(matches).delete())),
    );
  }
}
