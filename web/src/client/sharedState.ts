/** State of the page that several components show. It is neither stored in a row nor sent to the worker. */

import { useSyncExternalStore } from "react";

export class SharedState<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  /** Whether a component currently shows the state. */
  get hasListeners(): boolean {
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

export function useSharedState<T>(state: SharedState<T>): T {
  return useSyncExternalStore(state.subscribe, () => state.value);
}
