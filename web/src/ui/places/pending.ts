/**
 * A deletion that can still be undone: it waits some seconds behind a notification.
 *
 * If the page goes away meanwhile nothing is deleted. Losing what one wanted to keep is worse than having to delete
 * something twice, and the one who closed the page saw that it could be undone.
 */

import { useSyncExternalStore } from "react";

export const PATIENCE_MS = 7_000;

const timers = new Map<string, ReturnType<typeof setTimeout>>();
const listeners = new Set<() => void>();
let ids: ReadonlySet<string> = new Set();

/** Ids that are being deleted: lists leave them out. */
export function usePending(): ReadonlySet<string> {
  return useSyncExternalStore(subscribe, () => ids);
}

export function deleteSoon(id: string, commit: () => Promise<void>): void {
  undo(id);
  const timer = setTimeout(() => void commit().finally(() => undo(id)), PATIENCE_MS);
  timers.set(id, timer);
  tell();
}

export function undo(id: string): void {
  clearTimeout(timers.get(id));
  if (timers.delete(id)) tell();
}

function tell(): void {
  ids = new Set(timers.keys());
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
