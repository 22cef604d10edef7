/**
 * Locks of the files that this tab processes. When a tab is closed, the browser gives its locks to tabs that wait for
 * them.
 */

import { lockNames } from "../../lib/locks.ts";

interface HeldLock {
  release: () => void;
  /** Promise that resolves when another tab can acquire the lock. */
  released: Promise<unknown>;
}

export class FileLocks {
  readonly #locks = new Map<string, HeldLock>();
  readonly #pending = new Map<string, Promise<unknown>>();

  /** Return whether this tab holds the lock or waits for it. */
  has(id: string): boolean {
    return this.#locks.has(id) || this.#pending.has(id);
  }

  /** Acquire the lock, waiting for other tabs. */
  async acquire(id: string): Promise<void> {
    if (this.#locks.has(id)) return;
    // Reuse a pending request: a second request would wait until this tab releases the lock.
    const taking = this.#pending.get(id) ?? this.#request(id, {}).finally(() => this.#pending.delete(id));
    this.#pending.set(id, taking);
    await taking;
  }

  /** Acquire the lock if it is free. Return false if this or another tab holds it. */
  tryAcquire(id: string): Promise<boolean> {
    return this.#request(id, { ifAvailable: true });
  }

  /** Release the lock. Resolve when another tab can acquire it. */
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
