/**
 * Push blocks in their current state. RxDB repeats the state of its first attempt, so a block that was embedded while
 * the server was unreachable would be sent without vectors. RxDB later pushes the newer state again, and the server
 * ignores that.
 *
 * Other rows are pushed as RxDB sends them, because conflict handling compares the sent state. Imported turns are
 * marked, so that the server does not extract memories from them again.
 */

import type { RxCollection, WithDeleted } from "rxdb/plugins/core";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { stripMeta } from "./pendingRows.ts";

export interface Write {
  newDocumentState: WithDeleted<Row>;
  assumedMasterState?: WithDeleted<Row>;
  /** Whether the turn was imported with its memories. */
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
