/** When what the server did not take for now, a file or a question, goes there again: as late as it asks, ever less often. */

import { retryMs } from "./retryDelay.ts";

export class Retries {
  readonly #tries = new Map<string, number>();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

  /** `again` is called when it is time. */
  later(id: string, retryAfterS: number | undefined, again: () => void): void {
    const tries = this.#tries.get(id) ?? 0;
    this.#tries.set(id, tries + 1);
    clearTimeout(this.#timers.get(id));
    const timer = setTimeout(() => (this.#timers.delete(id), again()), retryMs(tries, retryAfterS));
    this.#timers.set(id, timer);
  }

  waits(id: string): boolean {
    return this.#timers.has(id);
  }

  end(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    this.#tries.delete(id);
  }
}
