/**
 * What is being deleted, and can still be brought back: it is deleted when the notice of it goes (see useUndoable).
 *
 * If the page goes away meanwhile nothing is deleted. Losing what one wanted to keep is worse than having to delete
 * something twice, and the one who closed the page saw that it could be undone.
 */

import { Shared, useShared } from "./sharedState.ts";

const ids = new Shared<ReadonlySet<string>>(new Set());

/** Ids that are being deleted: lists leave them out. */
export function usePending(): ReadonlySet<string> {
  return useShared(ids);
}

export function setPending(id: string, isPending: boolean): void {
  const changed = new Set(ids.value);
  if (isPending) changed.add(id);
  else changed.delete(id);
  ids.set(changed);
}
