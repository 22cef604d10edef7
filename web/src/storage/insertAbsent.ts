import type { RxCollection } from "rxdb/plugins/core";

const CONFLICT = 409;

/**
 * Inserts those of the rows that are not here, all or none of them: what has come by the sync stays as it is, also what
 * comes at this very moment. Resolves to how many were inserted.
 */
export async function insertAbsent<Row>(collection: RxCollection<Row>, rows: Row[]): Promise<number> {
  const { success, error } = await collection.bulkInsert(rows);
  const failed = error.find(({ status }) => status !== CONFLICT);
  if (failed) throw new Error(`A row of ${collection.name} was refused (${failed.status}).`);
  return success.length;
}
