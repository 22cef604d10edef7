/**
 * Blocks are sent as they are by now. RxDB keeps to what it held when it first tried: a block that was embedded while the
 * server was away would go there without its vectors, for the server to make its own. What goes out in place of an older
 * state comes up once more afterwards, and the server knows it for a repeat.
 *
 * No other rows: of those a person writes, a conflict tells what was lost, and must compare what was sent. Of a turn the
 * device says whether it came out of an export: the server asks no model about those.
 */

import type { RxCollection, WithDeleted } from "rxdb/plugins/core";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { stripMeta } from "./pendingRows.ts";

export interface Write {
  newDocumentState: WithDeleted<Row>;
  assumedMasterState?: WithDeleted<Row>;
  /** It comes out of an export, with what was made of it. */
  imported?: boolean;
}

export async function refreshWrites(
  collection: RxCollection,
  writes: Write[],
  isImported: (turn: Row) => Promise<boolean>,
): Promise<Write[]> {
  const idOf = ({ newDocumentState }: Write) => newDocumentState["id"] as string;
  if (collection.name === "episodes") {
    const noted = async (write: Write) => ({ ...write, imported: await isImported(write.newDocumentState) });
    return Promise.all(writes.map(noted));
  }
  if (collection.name !== "vectorEmbeddings") return writes;
  const stored = (await collection.storageInstance.findDocumentsById(writes.map(idOf), true)).map(stripMeta);
  const now = (write: Write) => stored.find(({ id }) => id === idOf(write)) as WithDeleted<Row> | undefined;
  return writes.map((write) => ({ ...write, newDocumentState: now(write) ?? write.newDocumentState }));
}
