/**
 * Which accounts are open in this browser: each tab holds a lock that it shares with the others, and who takes an
 * account from the device waits until none is held. A tab that went on would write the rows anew behind the removal.
 */

import { Coded } from "../model/coded.ts";

/** Tabs that were told to leave need a moment; one that the system has frozen never answers. */
const TIMEOUT_MS = 10_000;

const nameOf = (userId: string) => `vademecum-account-${userId}`;

/** Resolves when the account is not being removed, with what ends the presence of this tab. */
export function enter(userId: string): Promise<() => void> {
  return new Promise((entered, failed) => {
    const stay = () => new Promise<void>((leave) => entered(leave));
    navigator.locks.request(nameOf(userId), { mode: "shared" }, stay).catch(failed);
  });
}

/** Does `work` while no tab has the account open. Throws `OPEN_ELSEWHERE`, and nothing was done, if one stays. */
export async function alone(userId: string, work: () => Promise<void>): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let begun = false;
  try {
    await navigator.locks.request(nameOf(userId), { signal }, () => {
      begun = true;
      return work();
    });
  } catch (error) {
    throw signal.aborted && !begun ? new Coded("OPEN_ELSEWHERE") : error;
  }
}
