/**
 * Which accounts are open in this browser: each tab holds a lock that it shares with the others, and who takes an
 * account from the device, or gives its rows another form, waits until none is held. A tab that went on would write
 * the rows anew behind the removal, or in the form that nobody reads any more.
 */

import { Coded } from "../../core/errors.ts";
import { askedOn } from "../../core/schema/storedSchemaVersion.ts";

/** Tabs that were told to leave need a moment; one that the system has frozen never answers. */
const TIMEOUT_MS = 10_000;
const REQUEST_INTERVAL_MS = 500;

/** How far it is with opening: it waits for other tabs, or need not wait any longer. */
export type OpeningListener = (kind: "waits" | "opening") => void;

const lockNameOf = (userId: string) => `vademecum-account-${userId}`;

/** Resolves when the account is not being removed or changed, with what ends the presence of this tab. */
export function acquireSharedLock(userId: string, onState: OpeningListener): Promise<() => void> {
  const waitingTimer = setTimeout(() => onState("waits"), TIMEOUT_MS);
  return new Promise((resolve, reject) => {
    const holdLock = () => {
      clearTimeout(waitingTimer);
      onState("opening");
      return new Promise<void>((release) => resolve(release));
    };
    navigator.locks.request(lockNameOf(userId), { mode: "shared" }, holdLock).catch(reject);
  });
}

/** Does `work` while no tab has the account open. Throws `OPEN_ELSEWHERE`, and nothing was done, if one stays. */
export async function withExclusiveLock(userId: string, work: () => Promise<void>): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let hasLock = false;
  try {
    await navigator.locks.request(lockNameOf(userId), { signal }, () => {
      hasLock = true;
      return work();
    });
  } catch (error) {
    throw signal.aborted && !hasLock ? new Coded("OPEN_ELSEWHERE") : error;
  }
}

/** The same if no tab has it open at this moment; else nothing is done. */
export async function withExclusiveLockIfFree(userId: string, work: () => Promise<void>): Promise<void> {
  await navigator.locks.request(lockNameOf(userId), { ifAvailable: true }, async (lock) => {
    if (lock) await work();
  });
}

/** The same, however long it takes: those who have it open are asked, again and again, and this tab says that it waits. */
export async function waitForExclusiveLock(
  userId: string,
  work: () => Promise<void>,
  onState: OpeningListener,
): Promise<void> {
  const others = new BroadcastChannel(askedOn(userId));
  const requestTimer = setInterval(() => {
    onState("waits");
    others.postMessage(null);
  }, REQUEST_INTERVAL_MS);
  try {
    await navigator.locks.request(lockNameOf(userId), () => {
      clearInterval(requestTimer);
      onState("opening");
      return work();
    });
  } finally {
    clearInterval(requestTimer);
    others.close();
  }
}
