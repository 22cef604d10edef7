import type { RxCollection } from "rxdb/plugins/core";

const CONFLICT = 409;

/**
 * Insert the rows that do not exist yet and return their number. Existing rows stay unchanged, including rows
 * that the sync adds at the same moment.
 */
export async function insertAbsent<Row>(collection: RxCollection<Row>, rows: Row[]): Promise<number> {
  const { success, error } = await collection.bulkInsert(rows);
  const failed = error.find(({ status }) => status !== CONFLICT);
  if (failed) throw new Error(`A row of ${collection.name} could not be inserted (${failed.status}).`);
  return success.length;
}
