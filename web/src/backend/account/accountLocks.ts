/**
 * Which accounts are open in this browser: each tab holds a lock that it shares with the others, and who takes an
 * account from the device, or gives its rows another form, waits until none is held. A tab that went on would write
 * the rows anew behind the removal, or in the form that nobody reads any more.
 */

import { CodedError } from "../../core/errors.ts";
import { channelNames, lockNames } from "../../lib/locks.ts";

/** Tabs that were told to leave need a moment; one that the system has frozen never answers. */
const TIMEOUT_MS = 10_000;
const ASK_MS = 500;

/** How far it is with opening: it waits for other tabs, or need not wait any longer. */
export type ReportOpening = (kind: "waits" | "opening") => void;

/** Resolves when the account is not being removed or changed, with what ends the presence of this tab. */
export function acquireShared(userId: string, tell: ReportOpening): Promise<() => void> {
  const late = setTimeout(() => tell("waits"), TIMEOUT_MS);
  return new Promise((entered, failed) => {
    const stay = () => {
      clearTimeout(late);
      tell("opening");
      return new Promise<void>((leave) => entered(leave));
    };
    navigator.locks.request(lockNames.account(userId), { mode: "shared" }, stay).catch(failed);
  });
}

/** Does `work` while no tab has the account open. Throws `OPEN_ELSEWHERE`, and nothing was done, if one stays. */
export async function withExclusive(userId: string, work: () => Promise<void>): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let started = false;
  try {
    await navigator.locks.request(lockNames.account(userId), { signal }, () => {
      started = true;
      return work();
    });
  } catch (error) {
    throw signal.aborted && !started ? new CodedError("OPEN_ELSEWHERE") : error;
  }
}

/** The same if no tab has it open at this moment; else nothing is done. */
export async function tryExclusive(userId: string, work: () => Promise<void>): Promise<void> {
  await navigator.locks.request(lockNames.account(userId), { ifAvailable: true }, async (lock) => {
    if (lock) await work();
  });
}

/** The same, however long it takes: those who have it open are asked, again and again, and this tab says that it waits. */
export async function waitExclusive(
  userId: string,
  work: () => Promise<void>,
  tell: ReportOpening,
): Promise<void> {
  const others = new BroadcastChannel(channelNames.reload(userId));
  const requesting = setInterval(() => {
    tell("waits");
    others.postMessage(null);
  }, ASK_MS);
  try {
    await navigator.locks.request(lockNames.account(userId), () => {
      clearInterval(requesting);
      tell("opening");
      return work();
    });
  } finally {
    clearInterval(requesting);
    others.close();
  }
}
