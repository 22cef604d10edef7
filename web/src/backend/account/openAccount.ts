/**
 * Opens the rows of an account while no tab has them open in another form. A version of the app that gives them a new
 * one carries them over, once; what a tab of the version before wrote behind it would be lost. So each version looks
 * before it opens them: a newer one carries them over when it is alone with them, an older one leaves them alone.
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
  /** Ends the presence of this tab. */
  releaseLock: () => void;
}

/** Null: the account was removed meanwhile. Throws `NEWER_FORM`: only a newer version of the app opens these rows. */
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
      // No page starts a rewrite while this one is present, but the page before may have been closed in the middle of one.
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

/** Of two versions that both find nothing yet, the second one sees what the first has begun. */
function withOpeningLock<T>(userId: string, work: () => Promise<T>): Promise<T> {
  return navigator.locks.request(lockNames.opening(userId), work) as Promise<T>;
}
