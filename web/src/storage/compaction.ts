/**
 * Rewrite databases of this device so that deleted text leaves the disk.
 *
 * Chromium keeps IndexedDB in LevelDB, where a deleted value stays in the files until they are compacted: after a
 * thousand later writes, or never. Deleting a database compacts its range of keys at once. So the live rows are copied
 * to a second database, the original is deleted, and the rows are copied back under the original name.
 */

import Dexie from "dexie";

const BATCH = 100;
const PREFIX = "copy-of-";
/** Name of a table that only the copy has. It contains a row once the copy is complete. */
const COMPLETE = "complete";
/**
 * Transaction options that flush writes to disk. Without them, a power failure during a rewrite could lose rows that
 * only this device has.
 */
const DURABLE = { chromeTransactionDurability: "strict" } as const;

export async function rewriteDatabases(names: readonly string[]): Promise<void> {
  for (const name of names) {
    const copy = PREFIX + name;
    await deleteDatabase(copy);
    await copyDatabase(name, copy, { [COMPLETE]: "id" });
    const database = await new Dexie(copy, DURABLE).open();
    await database.table(COMPLETE).add({ id: COMPLETE });
    database.close();
    await replaceWithCopy(copy, name);
  }
  await compact();
}

/** Finish or discard rewrites that a closed page interrupted. Call this before the databases are opened. */
export async function recoverRewrites(prefix: string): Promise<void> {
  for (const copy of await copyNames(prefix)) {
    const database = await new Dexie(copy).open();
    const isComplete = (await database.table(COMPLETE).count()) > 0;
    database.close();
    if (isComplete) await replaceWithCopy(copy, copy.slice(PREFIX.length));
    else await deleteDatabase(copy); // the copy is incomplete, and the original is unchanged
  }
}

export async function copyNames(prefix: string): Promise<string[]> {
  return (await Dexie.getDatabaseNames()).filter((name) => name.startsWith(PREFIX + prefix));
}

/**
 * Make Chromium compact its files, so that deleted values leave the disk. The first deletion of a database
 * writes the log, with values and deletion markers, to a file. The second deletion merges that file with the
 * next one.
 */
export async function compact(): Promise<void> {
  for (let time = 0; time < 2; time++) {
    const scratch = new Dexie(`${PREFIX}nothing`);
    scratch.version(1).stores({ rows: "id" });
    await scratch.open();
    scratch.close();
    await deleteDatabase(scratch.name);
  }
}

async function replaceWithCopy(copy: string, name: string): Promise<void> {
  await deleteDatabase(name);
  await copyDatabase(copy, name);
  await deleteDatabase(copy);
}

async function copyDatabase(
  from: string,
  to: string,
  extraStores: Record<string, string> = {},
): Promise<void> {
  const source = await new Dexie(from).open();
  const tables = source.tables.filter(({ name }) => name !== COMPLETE);
  const stores = tables.map(({ name, schema }) => [
    name,
    [schema.primKey, ...schema.indexes].map(({ src }) => src).join(),
  ]);
  const target = new Dexie(to, DURABLE);
  target.version(source.verno).stores({ ...Object.fromEntries(stores), ...extraStores });
  await target.open();
  try {
    for (const { name } of tables) await copyTable(source, target, name);
  } finally {
    source.close();
    target.close();
  }
}

async function copyTable(source: Dexie, target: Dexie, name: string): Promise<void> {
  const table = source.table(name);
  const key = String(table.schema.primKey.keyPath);
  for (let last: unknown; ;) {
    const rest = last === undefined ? table.orderBy(":id") : table.where(":id").above(last);
    const rows = await rest.limit(BATCH).toArray();
    if (rows.length === 0) return;
    await target.table(name).bulkAdd(rows);
    last = rows.at(-1)[key];
  }
}

/**
 * Delete a database. Dexie's own function is not used, because it logs warnings until all closed connections have
 * ended.
 */
function deleteDatabase(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const deleting = indexedDB.deleteDatabase(name);
    deleting.onsuccess = () => resolve();
    deleting.onerror = () => reject(deleting.error);
  });
}
