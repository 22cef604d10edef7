/** Deletes rows so that no content of them stays on this device; and which rows are deleted here. */

import type { RxCollection, RxDocument } from "rxdb/plugins/core";
import { blank } from "../core/sync/tombstone.ts";

/**
 * Each in one write: a row that is blank and still alive would be a row like any other to another device. All at once,
 * so that RxDB gathers them: one after the other, five thousand turns take most of a minute. `goes` is asked again of
 * the row as it is when its turn comes.
 */
export async function bury<Row extends object>(
  rows: readonly RxDocument<Row>[],
  { at, goes = () => true }: { at?: string; goes?: (row: Row) => boolean } = {},
): Promise<void> {
  const dated = (row: Row) => (at === undefined ? row : { ...row, updatedAt: at });
  await Promise.all(
    rows.map((row) => {
      const schema = row.collection.schema.jsonSchema as Parameters<typeof blank>[1];
      return row.incrementalModify((held) =>
        goes(held as Row) ? (blank(dated(held as Row), schema) as typeof held) : held,
      );
    }),
  );
}

/** Whether the row was here and is deleted: queries see no row that is. */
export async function isBuried(collection: RxCollection<any>, id: string): Promise<boolean> {
  const [row] = await collection.storageInstance.findDocumentsById([id], true);
  return row?._deleted ?? false;
}
