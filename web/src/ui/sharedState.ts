/** What the page alone knows and draws wherever it matters: no row, and nothing that the worker has. */

import { useSyncExternalStore } from "react";

export class Shared<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  /** Whether it is drawn anywhere at this moment. */
  get isShown(): boolean {
    return this.#listeners.size > 0;
  }

  set(value: T): void {
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
}

export function useShared<T>(shared: Shared<T>): T {
  return useSyncExternalStore(shared.subscribe, () => shared.value);
}
