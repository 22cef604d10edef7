/** A server that asks to be left alone for a while is, by all requests of the sync: it counts them together. */

import { sleep } from "../sleep.ts";
import { isBusy } from "../http.ts";

const MAX_S = 300;

export class RetryAfter {
  #until = 0; // by a clock that nobody sets

  /** What a refusal asks for, within bounds. */
  record(error: unknown): void {
    if (!isBusy(error)) return;
    this.#until = Math.max(this.#until, performance.now() + Math.min(error.retryAfterS, MAX_S) * 1000);
  }

  get isActive(): boolean {
    return performance.now() < this.#until;
  }

  async wait(signal: AbortSignal): Promise<void> {
    while (this.isActive && !signal.aborted) await sleep(this.#until - performance.now(), signal);
  }
}
