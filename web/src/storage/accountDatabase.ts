/**
 * The rows of one account on this device. Each account has a separate RxDB database, so that accounts never
 * mix. It has ten collections. RxDB delays the thirteenth collection of a page and rejects the fourteenth.
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
/** Policy that disables RxDB's cache of a hundred query results for blocks, whose vectors take megabytes. */
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
    await database.close(); // an open database could not be opened again or removed
    throw error;
  }
}

/**
 * Migrate a collection. The old rows stay until all are migrated. RxDB's own `migratePromise` remembers the first
 * failure and fails every later attempt.
 */
async function migrate(collection: RxCollection): Promise<void> {
  if (collection.schema.version === 0) return;
  const migration = collection.getMigrationState();
  let cause: unknown;
  const subscription = migration.$.subscribe(({ error }) => (cause = error));
  await migration.startMigration();
  subscription.unsubscribe();
  if (!(await collection.migrationNeeded())) return;
  console.error(cause); // only the code reaches the page
  throw new CodedError("NOT_CARRIED_OVER");
}

/**
 * Remove the rows and drafts of an account from this device. No tab may have the rows open. RxDB's own removal empties
 * its databases but leaves them, one for each collection, with the account in their names. Call `compact` afterwards.
 */
export async function removeAccountDatabase(userId: string): Promise<void> {
  const names = [...(await storageNames(userId)), ...(await copies(userId)), draftDatabaseOf(userId)];
  await Promise.all(names.map((name) => Dexie.delete(name)));
}

/** Placeholder for the names of all storages. */
export const ALL = "*";

/**
 * Rewrite these storages of an account and the drafts. No tab may have them open. Storages that do not exist
 * are skipped.
 */
export async function rewriteStorages(userId: string, storages: readonly string[]): Promise<void> {
  const isSelected = (name: string) =>
    storages.some((storage) => storage === ALL || name.endsWith(`--${storage}`));
  const drafts = (await Dexie.exists(draftDatabaseOf(userId))) ? [draftDatabaseOf(userId)] : [];
  await rewriteDatabases([...(await storageNames(userId)).filter(isSelected), ...drafts]);
}

/** Return whether a page was closed while it rewrote storages: until `recover` is called, rows can be missing. */
export async function needsRecovery(userId: string): Promise<boolean> {
  return (await copies(userId)).length > 0;
}

/** Finish the rewrite that a closed page interrupted. */
export async function recoverStorages(userId: string): Promise<void> {
  await recoverRewrites(storagePrefix(userId));
  await recoverRewrites(draftDatabaseOf(userId));
}

async function copies(userId: string): Promise<string[]> {
  return [...(await copyNames(storagePrefix(userId))), ...(await copyNames(draftDatabaseOf(userId)))];
}

/** Compare the schema versions on this device with this app's. RxDB's database names contain the version. */
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
