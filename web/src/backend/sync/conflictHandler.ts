/** How two versions of a row become one, and what that took away (see core/schema/rowText.ts: which of it is worth keeping). */

import { defaultConflictHandler, type RxConflictHandler, type WithDeleted } from "rxdb/plugins/core";
import { mergeTwoWay, type Row } from "../../core/sync/twoWayMerge.ts";

export interface Conflict {
  ours: Row;
  /** What this device and the server had in common; undefined: nothing. */
  base: Row | undefined;
  outcome: Row;
}

/** For collections that are synced: give it to `addCollections`. */
export const conflictHandler: RxConflictHandler<Row> = {
  isEqual: defaultConflictHandler.isEqual,
  // With a common past the server has merged already, and its answer is the merged row.
  resolve: async ({ newDocumentState, assumedMasterState, realMasterState }) =>
    assumedMasterState === undefined
      ? (mergeTwoWay(newDocumentState, realMasterState) as WithDeleted<Row>)
      : realMasterState,
};

/** The same, telling of each conflict. A failing `tell` must not hold up what waits to be sent. */
export function reportingConflicts(tell: (conflict: Conflict) => Promise<void>): RxConflictHandler<Row> {
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
