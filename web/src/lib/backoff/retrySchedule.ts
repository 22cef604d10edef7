/** When what the server did not take for now, a file or a question, goes there again: as late as it asks, ever less often. */

import { retryDelayMs } from "./retryDelay.ts";

export class RetrySchedule {
  readonly #attempts = new Map<string, number>();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

  /** `again` is called when it is time. */
  schedule(id: string, retryAfterS: number | undefined, retry: () => void): void {
    const attempts = this.#attempts.get(id) ?? 0;
    this.#attempts.set(id, attempts + 1);
    clearTimeout(this.#timers.get(id));
    const timer = setTimeout(() => (this.#timers.delete(id), retry()), retryDelayMs(attempts, retryAfterS));
    this.#timers.set(id, timer);
  }

  isScheduled(id: string): boolean {
    return this.#timers.has(id);
  }

  cancel(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    this.#attempts.delete(id);
  }
}
