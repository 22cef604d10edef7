/** Retry delays for failed and temporarily rejected requests, and throttling of status updates. */

import { auditTime, merge, throttle, type Observable } from "rxjs";
import { ApiError, isBusy } from "./http.ts";
import { sleep } from "./sleep.ts";

const FIRST_DELAY_MS = 5_000;
const MAX_DELAY_MS = 600_000;

/**
 * Return the delay before the next attempt. It doubles after each failure, and is at least Retry-After and at most ten
 * minutes.
 */
export function retryDelayMs(failures: number, retryAfterS = 0): number {
  return Math.min(MAX_DELAY_MS, Math.max(FIRST_DELAY_MS * 2 ** failures, retryAfterS * 1000));
}

/**
 * Schedules retries with growing delays. The id tells separate retries apart, for instance those of different files.
 */
export class RetrySchedule {
  readonly #failures = new Map<string, number>();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

  schedule(id: string, retryAfterS: number | undefined, retry: () => void): void {
    const failures = this.#failures.get(id) ?? 0;
    this.#failures.set(id, failures + 1);
    clearTimeout(this.#timers.get(id));
    const timer = setTimeout(() => (this.#timers.delete(id), retry()), retryDelayMs(failures, retryAfterS));
    this.#timers.set(id, timer);
  }

  isScheduled(id: string): boolean {
    return this.#timers.has(id);
  }

  /** Cancel a scheduled retry. The next retry starts again with the shortest delay. */
  cancel(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    this.#failures.delete(id);
  }
}

const MAX_RETRY_AFTER_S = 300;

/** The Retry-After of a server, shared by all requests of the sync. */
export class RetryAfter {
  #until = 0; // a time of `performance.now()`, which changes of the system clock do not affect

  /** Respect the Retry-After of an error, if it has one, for at most five minutes. */
  record(error: unknown): void {
    if (!isBusy(error)) return;
    const waitMs = Math.min(error.retryAfterS, MAX_RETRY_AFTER_S) * 1000;
    this.#until = Math.max(this.#until, performance.now() + waitMs);
  }

  get isActive(): boolean {
    return performance.now() < this.#until;
  }

  async wait(signal: AbortSignal): Promise<void> {
    while (this.isActive && !signal.aborted) await sleep(this.#until - performance.now(), signal);
  }
}

const MAX_TOTAL_S = 60;
const DEFAULT_WAIT_S = 5;
/**
 * Codes of errors that mean that the account, the server or the LLM endpoint is busy. A stopping server is not among
 * them, so that no retry waits for it.
 */
const BUSY_CODES = ["RATE_LIMITED", "BUSY", "ASSISTANT_BUSY"];

/** Return whether an error is temporary, so that the server may accept the same request a little later. */
export function isTemporary(error: unknown): error is ApiError {
  return error instanceof ApiError && BUSY_CODES.includes(error.code);
}

/**
 * Retry `work` after the delay that each temporary error specifies. Throw the last error when the total delay would
 * exceed `maxTotalS`, or when `signal` aborts a delay. `onWait` gets the seconds of each delay when it starts, and 0
 * when it ends.
 */
export async function retryWhileBusy<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  onWait: (seconds: number) => void,
  maxTotalS = MAX_TOTAL_S,
): Promise<T> {
  for (let remainingS = maxTotalS; ;) {
    try {
      return await work();
    } catch (error) {
      if (!isTemporary(error)) throw error;
      const waitS = Math.max(error.retryAfterS ?? DEFAULT_WAIT_S, 1);
      remainingS -= waitS;
      if (remainingS < 0) throw error;
      onWait(waitS);
      await sleep(waitS * 1000, signal);
      if (signal.aborted) throw error;
      onWait(0);
    }
  }
}

const STATE_DEBOUNCE_MS = 150;
const ROWS_DEBOUNCE_MS = 500;

/**
 * Return an observable that calls `update` while it is subscribed: soon after the state changes, and at most twice a
 * second while rows change. Only one call runs at a time; changes during a call cause one more call.
 */
export function throttledUpdates(
  state$: Observable<unknown>,
  rows$: Observable<unknown>,
  update: () => Promise<void>,
): Observable<unknown> {
  return merge(state$, rows$.pipe(auditTime(ROWS_DEBOUNCE_MS))).pipe(
    auditTime(STATE_DEBOUNCE_MS),
    throttle(() => update(), { leading: true, trailing: true }),
  );
}
