/** Deletes rows so that no content of them stays on this device; and which rows are deleted here. */

import type { RxCollection, RxDocument } from "rxdb/plugins/core";
import { toTombstone } from "../core/sync/tombstone.ts";

/**
 * Each in one write: a row that is blank and still alive would be a row like any other to another device. All at once,
 * so that RxDB gathers them: one after the other, five thousand turns take most of a minute. `goes` is asked again of
 * the row as it is when its turn comes.
 */
export async function putTombstones<Row extends object>(
  rows: readonly RxDocument<Row>[],
  { at, goes: stillApplies = () => true }: { at?: string; goes?: (row: Row) => boolean } = {},
): Promise<void> {
  const withTime = (row: Row) => (at === undefined ? row : { ...row, updatedAt: at });
  await Promise.all(
    rows.map((row) => {
      const schema = row.collection.schema.jsonSchema as Parameters<typeof toTombstone>[1];
      return row.incrementalModify((current) =>
        stillApplies(current as Row)
          ? (toTombstone(withTime(current as Row), schema) as typeof current)
          : current,
      );
    }),
  );
}

/** Whether the row was here and is deleted: queries see no row that is. */
export async function isTombstone(collection: RxCollection<any>, id: string): Promise<boolean> {
  const [row] = await collection.storageInstance.findDocumentsById([id], true);
  return row?._deleted ?? false;
}
