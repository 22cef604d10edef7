/**
 * Opens the rows of an account while no tab has them open in another form. A version of the app that gives them a new
 * one carries them over, once; what a tab of the version before wrote behind it would be lost. So each version looks
 * before it opens them: a newer one carries them over when it is alone with them, an older one leaves them alone.
 */

import type { Device } from "../../storage/deviceDatabase.ts";
import { formOnDevice, needsRecovery, open, recover, type Records } from "../../storage/accountDatabase.ts";
import { Coded } from "../../core/errors.ts";
import { eraseDeletedText } from "./deletedTextErasure.ts";
import { createConflictHandler } from "../sync/conflictLosers.ts";
import { waitForExclusiveLock, acquireSharedLock, type OpeningListener } from "./accountLocks.ts";

interface OpenedAccount {
  database: Records;
  /** Ends the presence of this tab. */
  releaseLock: () => void;
}

/** Null: the account was removed meanwhile. Throws `NEWER_FORM`: only a newer version of the app opens these rows. */
export async function openAccount(
  device: Device,
  userId: string,
  onState: OpeningListener,
): Promise<OpenedAccount | null> {
  const openDatabase = async () => {
    const records: Records = await open(userId, (name) =>
      createConflictHandler(device, userId, name, () => records.collections[name]),
    );
    return records;
  };
  await eraseDeletedText(device, userId);
  while (true) {
    const releaseLock = await acquireSharedLock(userId, onState);
    try {
      if (!(await device.accounts.get(userId))) return (releaseLock(), null);
      // No page starts a rewrite while this one is present, but the page before may have been closed in the middle of one.
      if (!(await needsRecovery(userId))) {
        const records = await withOpeningLock(userId, async () =>
          (await needsMigration(userId)) ? null : openDatabase(),
        );
        if (records) return { database: records, releaseLock };
      }
    } catch (error) {
      releaseLock();
      throw error;
    }
    releaseLock();
    const migrate = async () => {
      await recover(userId);
      if (await needsMigration(userId)) await (await openDatabase()).close();
    };
    await waitForExclusiveLock(userId, migrate, onState);
  }
}

async function needsMigration(userId: string): Promise<boolean> {
  const form = await formOnDevice(userId);
  if (form === "newer") throw new Coded("NEWER_FORM");
  return form === "older";
}

/** Of two versions that both find nothing yet, the second one sees what the first has begun. */
function withOpeningLock<T>(userId: string, work: () => Promise<T>): Promise<T> {
  return navigator.locks.request(`vademecum-opening-${userId}`, work) as Promise<T>;
}
