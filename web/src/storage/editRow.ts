import type { RxDocument } from "rxdb/plugins/core";

/**
 * Change the current state of a row. A row that has been deleted stays unchanged, because content in a tombstone would
 * be synced to every device.
 */
export async function editRow<Row extends object>(
  row: RxDocument<Row>,
  change: (current: Row) => Row,
): Promise<void> {
  await row.incrementalModify((held) => (held._deleted ? held : (change(held as Row) as typeof held)));
}
