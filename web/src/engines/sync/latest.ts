/**
 * Blocks are sent as they are by now. RxDB keeps to what it held when it first tried: a block that was embedded while the
 * server was away would go there without its vectors, for the server to make its own. What goes out in place of an older
 * state comes up once more afterwards, and the server knows it for a repeat.
 *
 * No other rows: of those a person writes, a conflict tells what was lost, and must compare what was sent.
 */

import type { RxCollection, WithDeleted } from "rxdb/plugins/core";
import type { Row } from "../../model/reunite.ts";

export interface Write {
  newDocumentState: WithDeleted<Row>;
  assumedMasterState?: WithDeleted<Row>;
}

export async function latest(collection: RxCollection, writes: Write[]): Promise<Write[]> {
  if (collection.name !== "vectorEmbeddings") return writes;
  const idOf = ({ newDocumentState }: Write) => newDocumentState.id as string;
  const stored = await collection.storageInstance.findDocumentsById(writes.map(idOf), true);
  const byId = new Map(stored.map(({ _meta, _rev, _attachments, ...row }) => [row["id"] as string, row]));
  const now = (write: Write) => byId.get(idOf(write)) as WithDeleted<Row> | undefined;
  return writes.map((write) => ({ ...write, newDocumentState: now(write) ?? write.newDocumentState }));
}
