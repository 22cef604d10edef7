/**
 * Account locks. Each tab holds a shared lock for its open account. Removing or migrating an account needs the exclusive
 * lock: an open tab would write rows after the removal, or with the old schema.
 */

import { CodedError } from "../../core/errors.ts";
import { channelNames, lockNames } from "../../lib/locks.ts";

/**
 * Time limit for other tabs to release the lock. They need a moment to reload, and a frozen tab never
 * responds.
 */
const TIMEOUT_MS = 10_000;
const ASK_MS = 500;

/** Callback that reports whether opening the account waits for other tabs. */
export type ReportOpening = (kind: "waits" | "opening") => void;

/** Wait until the account is not being removed or migrated, take the shared lock and return the release function. */
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

/** Run `work` while no tab has the account open. Throw `OPEN_ELSEWHERE`, without running it, if one stays open. */
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

/** Run `work` if no tab has the account open now. */
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
