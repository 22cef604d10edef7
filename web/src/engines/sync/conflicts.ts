/** What a conflict took away is told before it is gone (see model/rowText.ts: which of it is worth keeping). */

import type { RxConflictHandler } from "rxdb/plugins/core";
import type { Row } from "../../model/reunite.ts";
import { conflictHandler } from "./sync.ts";

export interface Conflict {
  ours: Row;
  /** What this device and the server had in common; undefined: nothing. */
  base: Row | undefined;
  outcome: Row;
}

/** The app's conflict handler, telling of each conflict. A failing `tell` must not hold up what waits to be sent. */
export function telling(tell: (conflict: Conflict) => Promise<void>): RxConflictHandler<Row> {
  return {
    isEqual: conflictHandler.isEqual,
    resolve: async (input, context) => {
      const outcome = await conflictHandler.resolve(input, context);
      const { newDocumentState: ours, assumedMasterState: base } = input;
      await tell({ ours, base, outcome }).catch(console.error);
      return outcome;
    },
  };
}
