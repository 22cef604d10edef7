/** A server that asks to be left alone for a while is, by all requests of the sync: it counts them together. */

import { pause } from "../sleep.ts";
import { isBusy } from "../http.ts";

const MOST_S = 300;

export class Quiet {
  #until = 0; // by a clock that nobody sets

  /** What a refusal asks for, within bounds. */
  heed(error: unknown): void {
    if (!isBusy(error)) return;
    this.#until = Math.max(this.#until, performance.now() + Math.min(error.retryAfterS, MOST_S) * 1000);
  }

  get lasts(): boolean {
    return performance.now() < this.#until;
  }

  async over(signal: AbortSignal): Promise<void> {
    while (this.lasts && !signal.aborted) await pause(this.#until - performance.now(), signal);
  }
}
