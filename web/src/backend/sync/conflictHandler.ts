/** Resolve conflicts between this device and the server, and report them. */

import { defaultConflictHandler, type RxConflictHandler, type WithDeleted } from "rxdb/plugins/core";
import { mergeTwoWay, type Row } from "../../core/sync/twoWayMerge.ts";

export interface Conflict {
  ours: Row;
  /** The assumed state: the last state that both sides had. Undefined if there is none. */
  base: Row | undefined;
  outcome: Row;
}

/** The conflict handler for `addCollections`. */
export const conflictHandler: RxConflictHandler<Row> = {
  isEqual: defaultConflictHandler.isEqual,
  // If there is an assumed state, the server has already merged both sides, and its state is the merged row.
  resolve: async ({ newDocumentState, assumedMasterState, realMasterState }) =>
    assumedMasterState === undefined
      ? (mergeTwoWay(newDocumentState, realMasterState) as WithDeleted<Row>)
      : realMasterState,
};

/** Return a conflict handler that also reports each conflict to `tell`. A failing report does not block the push. */
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
