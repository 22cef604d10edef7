/** What was written here and the server has not answered for. RxDB keeps it, but has no question for it. */

import { getAssumedMasterState, getChangedDocumentsSince } from "rxdb/plugins/core";
import type { RxReplicationState } from "rxdb/plugins/replication";
import type { Row } from "../../core/sync/twoWayMerge.ts";

/** How RxDB marks what it wrote because the server has it. */
const DOWNSTREAM = "replication-downstream";

/** Whether the sync made a write: what came with it, or what a conflict has become. */
export function isReplicated({ context }: { context: string }): boolean {
  return context.startsWith("replication-");
}

/** Whether a write is to be sent: it was made here, or is what a conflict has become. */
export function isLocal({ context }: { context: string }): boolean {
  return !context.startsWith(DOWNSTREAM);
}

/** How many rows of a collection, counted up to `most`. Not known while the replication has not begun. */
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

/** A row without what RxDB keeps beside it. */
export function stripMeta<T extends object>(row: T): T {
  const { _meta, _rev, _attachments, ...fields } = row as Record<string, unknown>;
  return fields as T;
}
