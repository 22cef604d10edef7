/** Asking again what a server that is busy refuses for now. */

import { pause } from "../sleep.ts";
import { Refusal } from "../http.ts";

const PATIENCE_S = 60;
const WAIT_S = 5;
/** Of the account, of the server, and of the endpoint that it asks. A server that stops is not waited for. */
const FOR_NOW = ["RATE_LIMITED", "BUSY", "ASSISTANT_BUSY"];

/**
 * The outcome of `work`, which is tried again after the wait that a refusal asks for, as long as all waits together
 * are within `patienceS`. Then, and once `signal` has ended the waiting, throws the last refusal. `waits` is told how many
 * seconds each wait takes, and 0 at its end.
 */
export async function patiently<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  waits: (seconds: number) => void,
  patienceS = PATIENCE_S,
): Promise<T> {
  for (let left = patienceS; ;) {
    try {
      return await work();
    } catch (error) {
      if (!isForNow(error)) throw error;
      const wait = Math.max(error.retryAfterS ?? WAIT_S, 1);
      left -= wait;
      if (left < 0) throw error;
      waits(wait);
      await pause(wait * 1000, signal);
      if (signal.aborted) throw error;
      waits(0);
    }
  }
}

/** Whether the same request may be accepted a little later. */
export function isForNow(error: unknown): error is Refusal {
  return error instanceof Refusal && FOR_NOW.includes(error.code);
}
