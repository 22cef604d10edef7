/**
 * The ids of items that are deleted when their "Undo" notice closes (see useUndoableDelete).
 *
 * If the page is closed while the notice is open, the item is not deleted: losing an item that the user wanted to keep
 * is worse than having to delete it twice.
 */

import { SharedState, useSharedState } from "../client/sharedState.ts";

const ids = new SharedState<ReadonlySet<string>>(new Set());

/** Return the ids of items that lists must leave out. */
export function usePendingDeletes(): ReadonlySet<string> {
  return useSharedState(ids);
}

export function setPendingDelete(id: string, isPending: boolean): void {
  const changed = new Set(ids.value);
  if (isPending) changed.add(id);
  else changed.delete(id);
  ids.set(changed);
}
