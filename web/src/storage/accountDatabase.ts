/**
 * The rows of one account on this device. Each account has a separate RxDB database, so that accounts never mix. A
 * database has ten collections; a page cannot open many more, because RxDB delays the thirteenth and rejects the
 * fourteenth.
 */

import Dexie from "dexie";
import {
  addRxPlugin,
  createRxDatabase,
  defaultCacheReplacementPolicyMonad,
  type RxCollection,
  type RxConflictHandler,
  type RxDatabase,
  type RxStorage,
} from "rxdb/plugins/core";
import { getRxStorageDexie } from "rxdb/plugins/storage-dexie";
import { CodedError } from "../core/errors.ts";
import { compareStoredVersion, type StoredVersion } from "../core/schema/storedSchemaVersion.ts";
import type { Collections } from "../core/schema/rows.ts";
import { migrations, type Migrations } from "./migrations.ts";
import { copyNames, recoverRewrites, rewriteDatabases } from "./compaction.ts";
import { draftDatabaseOf } from "./draftDatabase.ts";
import { schemas, type Schemas } from "./schemas.ts";

export { compact } from "./compaction.ts";

export type AccountDatabase = RxDatabase<{ [Name in keyof Collections]: RxCollection<Collections[Name]> }>;

/** Schemas, migrations and storage of a database. Tests replace them to migrate between schema versions. */
interface DatabaseDefinition {
  schemas: Schemas;
  migrations: Migrations;
  storage: RxStorage<any, any>;
}

const DEFINITION: DatabaseDefinition = { schemas, migrations, storage: getRxStorageDexie() };
/**
 * Policy that disables RxDB's cache of a hundred query results. It is used for blocks, because cached blocks would keep
 * megabytes of vectors in memory.
 */
const NO_QUERY_CACHE = defaultCacheReplacementPolicyMonad(0, 0);
const databaseName = (userId: string) => `vademecum-${userId}`;
const storagePrefix = (userId: string) => `rxdb-dexie-${databaseName(userId)}--`;

/** Open the database of an account. Rows of older schemas are migrated first. */
export async function openAccountDatabase(
  userId: string,
  conflictHandlerOf: (name: keyof Collections) => RxConflictHandler<any>,
  { schemas, migrations, storage }: DatabaseDefinition = DEFINITION,
): Promise<AccountDatabase> {
  if (Object.values(schemas).some(({ version }) => version > 0)) {
    addRxPlugin((await import("rxdb/plugins/migration-schema")).RxDBMigrationSchemaPlugin);
  }
  const database: AccountDatabase = await createRxDatabase({
    name: databaseName(userId),
    storage,
    multiInstance: true, // other tabs receive the changes of this one
    eventReduce: true,
  });
  const collections = Object.entries(schemas).map(([key, schema]) => {
    const name = key as keyof Collections;
    const conflictHandler = conflictHandlerOf(name);
    return [
      name,
      {
        schema,
        conflictHandler,
        migrationStrategies: migrations[name] ?? {},
        autoMigrate: false,
        ...(name === "vectorEmbeddings" ? { cacheReplacementPolicy: NO_QUERY_CACHE } : {}),
      },
    ];
  });
  try {
    await database.addCollections(Object.fromEntries(collections));
    await Promise.all(Object.values(database.collections).map(migrate));
    return database;
  } catch (error) {
    await database.close(); // a database left open could neither be opened again nor removed
    throw error;
  }
}

/**
 * Migrate a collection. The old rows stay until all rows are migrated. RxDB's own `migratePromise` is not used, because
 * it remembers the first failure and fails every later attempt.
 */
async function migrate(collection: RxCollection): Promise<void> {
  if (collection.schema.version === 0) return;
  const migration = collection.getMigrationState();
  let cause: unknown;
  const subscription = migration.$.subscribe(({ error }) => (cause = error));
  await migration.startMigration();
  subscription.unsubscribe();
  if (!(await collection.migrationNeeded())) return;
  console.error(cause); // log the cause, because only the code reaches the page
  throw new CodedError("NOT_CARRIED_OVER");
}

/**
 * Remove the rows and drafts of an account from this device. No tab may have the rows open. RxDB's own removal is not
 * used: it empties its databases, one for each collection, but does not delete them, and their names contain the
 * account's id. Call `compact` afterwards.
 */
export async function removeAccountDatabase(userId: string): Promise<void> {
  const names = [...(await storageNames(userId)), ...(await copies(userId)), draftDatabaseOf(userId)];
  await Promise.all(names.map((name) => Dexie.delete(name)));
}

/** Placeholder for the names of all storages. */
export const ALL = "*";

/**
 * Rewrite the account's drafts and the given storages of the account. No tab may have them open. Storages that do not
 * exist are skipped.
 */
export async function rewriteStorages(userId: string, storages: readonly string[]): Promise<void> {
  const isSelected = (name: string) =>
    storages.some((storage) => storage === ALL || name.endsWith(`--${storage}`));
  const drafts = (await Dexie.exists(draftDatabaseOf(userId))) ? [draftDatabaseOf(userId)] : [];
  await rewriteDatabases([...(await storageNames(userId)).filter(isSelected), ...drafts]);
}

/**
 * Return whether a page was closed while it rewrote storages. Until `recoverStorages` is called, rows may be missing.
 */
export async function needsRecovery(userId: string): Promise<boolean> {
  return (await copies(userId)).length > 0;
}

/** Finish or discard the rewrites that a closed page interrupted. */
export async function recoverStorages(userId: string): Promise<void> {
  await recoverRewrites(storagePrefix(userId));
  await recoverRewrites(draftDatabaseOf(userId));
}

async function copies(userId: string): Promise<string[]> {
  return [...(await copyNames(storagePrefix(userId))), ...(await copyNames(draftDatabaseOf(userId)))];
}

/**
 * Compare the schema versions of the rows on this device with those of this app. RxDB's database names contain the
 * version.
 */
export async function schemaVersionOnDevice(userId: string): Promise<StoredVersion> {
  const stored = (await storageNames(userId)).map((name) => {
    const [version, collection] = name.slice(storagePrefix(userId).length).split("--");
    return { collection: collection!, version: Number(version) };
  });
  return compareStoredVersion(stored, schemas);
}

/** Return whether this device has rows of an account, without opening them. */
export async function isOnDevice(userId: string): Promise<boolean> {
  return (await storageNames(userId)).length > 0;
}

async function storageNames(userId: string): Promise<string[]> {
  return (await Dexie.getDatabaseNames()).filter((name) => name.startsWith(storagePrefix(userId)));
}
