/**
 * Opens the rows of an account while no tab has them open in another form. A version of the app that gives them a new
 * one carries them over, once; what a tab of the version before wrote behind it would be lost. So each version looks
 * before it opens them: a newer one carries them over when it is alone with them, an older one leaves them alone.
 */

import type { Device } from "../../storage/deviceDatabase.ts";
import { formOnDevice, needsRecovery, open, recover, type Records } from "../../storage/accountDatabase.ts";
import { Coded } from "../../core/errors.ts";
import { eraseLeftover } from "./deletedTextErasure.ts";
import { keeping } from "../sync/conflictLosers.ts";
import { aloneAtLast, enter, type ReportOpening } from "./accountLocks.ts";

interface Opened {
  records: Records;
  /** Ends the presence of this tab. */
  leave: () => void;
}

/** Null: the account was removed meanwhile. Throws `NEWER_FORM`: only a newer version of the app opens these rows. */
export async function openRows(device: Device, userId: string, tell: ReportOpening): Promise<Opened | null> {
  const openHere = async () => {
    const records: Records = await open(userId, (name) =>
      keeping(device, userId, name, () => records.collections[name]),
    );
    return records;
  };
  await eraseLeftover(device, userId);
  while (true) {
    const leave = await enter(userId, tell);
    try {
      if (!(await device.accounts.get(userId))) return (leave(), null);
      // No page starts a rewrite while this one is present, but the page before may have been closed in the middle of one.
      if (!(await needsRecovery(userId))) {
        const records = await oneByOne(userId, async () => ((await isOlder(userId)) ? null : openHere()));
        if (records) return { records, leave };
      }
    } catch (error) {
      leave();
      throw error;
    }
    leave();
    const carryOver = async () => {
      await recover(userId);
      if (await isOlder(userId)) await (await openHere()).close();
    };
    await aloneAtLast(userId, carryOver, tell);
  }
}

async function isOlder(userId: string): Promise<boolean> {
  const form = await formOnDevice(userId);
  if (form === "newer") throw new Coded("NEWER_FORM");
  return form === "older";
}

/** Of two versions that both find nothing yet, the second one sees what the first has begun. */
function oneByOne<T>(userId: string, work: () => Promise<T>): Promise<T> {
  return navigator.locks.request(`vademecum-opening-${userId}`, work) as Promise<T>;
}
