/** Asking again what a server that is busy refuses for now. */

import { sleep } from "../sleep.ts";
import { ApiError } from "../http.ts";

const MAX_TOTAL_S = 60;
const DEFAULT_WAIT_S = 5;
/** Of the account, of the server, and of the endpoint that it asks. A server that stops is not waited for. */
const BUSY_CODES = ["RATE_LIMITED", "BUSY", "ASSISTANT_BUSY"];

/**
 * The outcome of `work`, which is tried again after the wait that a refusal asks for, as long as all waits together
 * are within `patienceS`. Then, and once `signal` has ended the waiting, throws the last refusal. `waits` is told how many
 * seconds each wait takes, and 0 at its end.
 */
export async function retryWhileBusy<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  onWait: (seconds: number) => void,
  maxTotalS = MAX_TOTAL_S,
): Promise<T> {
  for (let left = maxTotalS; ;) {
    try {
      return await work();
    } catch (error) {
      if (!isTemporary(error)) throw error;
      const wait = Math.max(error.retryAfterS ?? DEFAULT_WAIT_S, 1);
      left -= wait;
      if (left < 0) throw error;
      onWait(wait);
      await sleep(wait * 1000, signal);
      if (signal.aborted) throw error;
      onWait(0);
    }
  }
}

/** Whether the same request may be accepted a little later. */
export function isTemporary(error: unknown): error is ApiError {
  return error instanceof ApiError && BUSY_CODES.includes(error.code);
}
