/** Local writes that the server has not acknowledged. RxDB stores them but has no query for them. */

import { getAssumedMasterState, getChangedDocumentsSince } from "rxdb/plugins/core";
import type { RxReplicationState } from "rxdb/plugins/replication";
import type { Row } from "../../core/sync/twoWayMerge.ts";

/** Prefix of the `context` of writes that RxDB makes for rows from the server. */
const DOWNSTREAM = "replication-downstream";

/** Return whether the sync wrote these changes: pulled rows or resolved conflicts. */
export function isReplicated({ context }: { context: string }): boolean {
  return context.startsWith("replication-");
}

/** Return whether these changes must be pushed: local writes or resolved conflicts. */
export function isLocal({ context }: { context: string }): boolean {
  return !context.startsWith(DOWNSTREAM);
}

/** Count the pending rows of a collection, up to `most`. Return undefined before the replication has started. */
export async function countPendingRows(
  replication: RxReplicationState<Row, any>,
  most: number,
): Promise<number | undefined> {
  const state = replication.internalReplicationState;
  if (!state) return undefined;
  const checkpoint = state.lastCheckpointDoc.up?.checkpointData;
  const { documents } = await getChangedDocumentsSince(state.input.forkInstance, most, checkpoint);
  if (documents.length === 0) return 0;
  const idOf = (row: Row) => String(row["id"]);
  const known = await getAssumedMasterState(state, documents.map(idOf));
  const { isEqual } = state.input.conflictHandler;
  return documents.filter((row) => {
    const stored = known[idOf(row)]?.docData;
    return !stored || !isEqual(stored, stripMeta(row), "waiting");
  }).length;
}

/** Return a row without RxDB's internal fields. */
export function stripMeta<T extends object>(row: T): T {
  const { _meta, _rev, _attachments, ...fields } = row as Record<string, unknown>;
  return fields as T;
}
