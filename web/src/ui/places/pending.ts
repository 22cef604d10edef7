/**
 * What is being deleted, and can still be brought back: it is deleted when the notice of it goes (see useUndoable).
 *
 * If the page goes away meanwhile nothing is deleted. Losing what one wanted to keep is worse than having to delete
 * something twice, and the one who closed the page saw that it could be undone.
 */

import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let ids: ReadonlySet<string> = new Set();

/** Ids that are being deleted: lists leave them out. */
export function usePending(): ReadonlySet<string> {
  return useSyncExternalStore(subscribe, () => ids);
}

export function setPending(id: string, isPending: boolean): void {
  const changed = new Set(ids);
  if (isPending) changed.add(id);
  else changed.delete(id);
  ids = changed;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
