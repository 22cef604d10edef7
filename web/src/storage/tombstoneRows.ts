/** Delete rows so that none of their content stays on this device. */

import type { RxCollection, RxDocument } from "rxdb/plugins/core";
import { toTombstone } from "../core/sync/tombstone.ts";

/**
 * Replace rows by tombstones. Each row is blanked and deleted in one write, because other devices would interpret a
 * blank row that is not deleted as an edit. All writes start together because RxDB batches them; one by one, 5000 turns
 * take most of a minute. A row for which `goes` returns false at the time of the write stays unchanged.
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

/** Return whether the row is a tombstone on this device. Queries do not return tombstones. */
export async function isTombstone(collection: RxCollection<any>, id: string): Promise<boolean> {
  const [row] = await collection.storageInstance.findDocumentsById([id], true);
  return row?._deleted ?? false;
}
