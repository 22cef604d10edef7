/**
 * Which files this tab works at. It holds a lock for each, which the browser takes from a tab that is closed: whoever
 * waits for it goes on where that one was.
 */

import { lockNames } from "../../lib/locks.ts";

interface HeldLock {
  release: () => void;
  /** Resolves when another tab may have it. */
  released: Promise<unknown>;
}

export class FileLocks {
  readonly #locks = new Map<string, HeldLock>();
  readonly #pending = new Map<string, Promise<unknown>>();

  /** Whether this tab is at it, or waits until it may be. */
  has(id: string): boolean {
    return this.#locks.has(id) || this.#pending.has(id);
  }

  /** Resolves when no other tab is at it. From then on this one is, if it was not already. */
  async acquire(id: string): Promise<void> {
    if (this.#locks.has(id)) return;
    // A second request of this tab would wait for the first, and so for itself.
    const taking = this.#pending.get(id) ?? this.#request(id, {}).finally(() => this.#pending.delete(id));
    this.#pending.set(id, taking);
    await taking;
  }

  /** False: somebody is at it already, this tab or another. */
  tryAcquire(id: string): Promise<boolean> {
    return this.#request(id, { ifAvailable: true });
  }

  /** Resolves when it is free. */
  async release(id: string): Promise<void> {
    const held = this.#locks.get(id);
    this.#locks.delete(id);
    held?.release();
    await held?.released;
  }

  #request(id: string, options: LockOptions): Promise<boolean> {
    return new Promise((granted, failed) => {
      const hold = (lock: Lock | null) => {
        if (!lock) return granted(false);
        return new Promise<void>((release) => {
          this.#locks.set(id, { release, released });
          granted(true);
        });
      };
      const released = navigator.locks.request(lockNames.file(id), options, hold);
      released.catch(failed);
    });
  }
}
