/**
 * Open the database of an account. A newer version of the app migrates the rows first, while no other tab has them
 * open: rows that an older version wrote after the migration would be lost. An older version does not open migrated
 * rows.
 */

import type { DeviceDatabase } from "../../storage/deviceDatabase.ts";
import {
  schemaVersionOnDevice,
  needsRecovery,
  openAccountDatabase,
  recoverStorages,
  type AccountDatabase,
} from "../../storage/accountDatabase.ts";
import { lockNames } from "../../lib/locks.ts";
import { CodedError } from "../../core/errors.ts";
import { eraseDeletedText } from "./deletedTextErasure.ts";
import { keepConflictLosers } from "../sync/conflictLosers.ts";
import { waitExclusive, acquireShared, type ReportOpening } from "./accountLocks.ts";

interface OpenedDatabase {
  database: AccountDatabase;
  /** Release the shared account lock. */
  releaseLock: () => void;
}

/**
 * Open the database of an account under a shared lock. Return null if the account was removed before the lock was
 * granted. Throw `NEWER_FORM` if a newer version of the app has migrated the rows.
 */
export async function openDatabase(
  device: DeviceDatabase,
  userId: string,
  tell: ReportOpening,
): Promise<OpenedDatabase | null> {
  const open = async () => {
    const database: AccountDatabase = await openAccountDatabase(userId, (name) =>
      keepConflictLosers(device, userId, name, () => database.collections[name]),
    );
    return database;
  };
  await eraseDeletedText(device, userId);
  while (true) {
    const leave = await acquireShared(userId, tell);
    try {
      if (!(await device.accounts.get(userId))) return (leave(), null);
      // No page starts a rewrite while this one holds the lock, but a closed page may have left an unfinished rewrite.
      if (!(await needsRecovery(userId))) {
        const database = await withOpeningLock(userId, async () =>
          (await needsMigration(userId)) ? null : open(),
        );
        if (database) return { database, releaseLock: leave };
      }
    } catch (error) {
      leave();
      throw error;
    }
    leave();
    const migrate = async () => {
      await recoverStorages(userId);
      if (await needsMigration(userId)) await (await open()).close();
    };
    await waitExclusive(userId, migrate, tell);
  }
}

async function needsMigration(userId: string): Promise<boolean> {
  const form = await schemaVersionOnDevice(userId);
  if (form === "newer") throw new CodedError("NEWER_FORM");
  return form === "older";
}

/**
 * Run `work` while no other tab opens the database. When two versions of the app open an account without rows, the
 * second one must find the schema that the first one stored.
 */
function withOpeningLock<T>(userId: string, work: () => Promise<T>): Promise<T> {
  return navigator.locks.request(lockNames.opening(userId), work) as Promise<T>;
}
