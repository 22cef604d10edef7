/**
 * Account locks. Each tab holds a shared lock for its open account. Removing or migrating an account needs the
 * exclusive lock, because a tab with the account open could write rows after the removal, or in the old schema.
 */

import { CodedError } from "../../core/errors.ts";
import { channelNames, lockNames } from "../../lib/locks.ts";

/**
 * Time for other tabs to release the lock: after it, `acquireShared` reports that it waits, and `withExclusive` gives
 * up. Tabs need a moment to reload, and a frozen tab never responds.
 */
const TIMEOUT_MS = 10_000;
const REQUEST_INTERVAL_MS = 500;

/** Callback that reports whether opening the account waits for other tabs ("waits") or proceeds ("opening"). */
export type ReportOpening = (kind: "waits" | "opening") => void;

/**
 * Take the shared lock, waiting for a removal or migration of the account to end. Return the function that releases the
 * lock.
 */
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

/**
 * Run `work` while no tab has the account open. If a tab keeps the account open for too long, throw `OPEN_ELSEWHERE`
 * without running `work`.
 */
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

/** Run `work` if no tab has the account open. Otherwise return without running it. */
export async function tryExclusive(userId: string, work: () => Promise<void>): Promise<void> {
  await navigator.locks.request(lockNames.account(userId), { ifAvailable: true }, async (lock) => {
    if (lock) await work();
  });
}

/** Run `work` once no tab has the account open. Until then, ask the other tabs repeatedly to reload. */
export async function waitExclusive(
  userId: string,
  work: () => Promise<void>,
  tell: ReportOpening,
): Promise<void> {
  const others = new BroadcastChannel(channelNames.reload(userId));
  const requesting = setInterval(() => {
    tell("waits");
    others.postMessage(null);
  }, REQUEST_INTERVAL_MS);
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
