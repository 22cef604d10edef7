import type { RxDocument } from "rxdb/plugins/core";

/**
 * Changes a row as it is when its turn comes. One that was deleted meanwhile stays as it is: a tombstone carries no
 * content, and what is written into it would go to every device.
 */
export async function editRow<Row extends object>(
  row: RxDocument<Row>,
  change: (current: Row) => Row,
): Promise<void> {
  await row.incrementalModify((held) => (held._deleted ? held : (change(held as Row) as typeof held)));
}
