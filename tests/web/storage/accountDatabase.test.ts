/** The account database on a device: the number of its collections, and migrations of rows. */

import { randomUUID } from "node:crypto";
import { getRxStorageMemory } from "rxdb/plugins/storage-memory";
import { NON_PREMIUM_COLLECTION_LIMIT } from "rxdb/plugins/core";
import { openAccountDatabase } from "../../../web/src/storage/accountDatabase.ts";
import { schemas, type Schemas } from "../../../web/src/storage/schemas.ts";
import { insert, stored } from "../device.ts";
import { conflictHandler } from "../../../web/src/backend/sync/conflictHandler.ts";

const { properties, ...rest } = schemas.facts;
const newer = { ...rest, version: 1, properties: { ...properties, colour: { type: "string" } } };
/** The schemas of a later version, in which facts have one more field. */
const coloured = { ...schemas, facts: newer } as unknown as Schemas;

test("RxDB's free limit allows the ten collections", () => {
  expect(Object.keys(schemas)).toHaveLength(10);
  expect(NON_PREMIUM_COLLECTION_LIMIT).toBeGreaterThan(10);
});

test("opening the database migrates older rows", async () => {
  const [user, storage] = [randomUUID(), getRxStorageMemory()];
  const before = await openAccountDatabase(user, () => conflictHandler, { schemas, migrations: {}, storage });
  const at = "2026-01-01T00:00:00.000Z";
  const fact = { key: "user.name", value: "Ada", sourceRemoved: false, confidence: 1, confirmed: true };
  await before.facts.insert({ id: "f1", createdAt: at, updatedAt: at, ...fact });
  await before.close();

  const migrations = { facts: { 1: (row: object) => ({ ...row, colour: "green" }) } };
  const after = await openAccountDatabase(user, () => conflictHandler, {
    schemas: coloured,
    migrations,
    storage,
  });
  expect((await after.facts.findOne("f1").exec())?.toJSON()).toMatchObject({ value: "Ada", colour: "green" });
  await after.close();
});

test("a failed migration keeps all rows and can be retried", async () => {
  const [user, storage] = [randomUUID(), getRxStorageMemory()];
  const before = await openAccountDatabase(user, () => conflictHandler, { schemas, migrations: {}, storage });
  const ids = ["f1", "f2", "f3"];
  await insert(before, "facts", ...ids.map((id) => ({ id, key: id })));
  const storedBefore = await Promise.all(ids.map((id) => stored(before, "facts", id)));
  await before.close();

  const migrate = (colour: (row: { id: string }) => string) => {
    const migrations = { facts: { 1: (row: { id: string }) => ({ ...row, colour: colour(row) }) } };
    return openAccountDatabase(user, () => conflictHandler, { schemas: coloured, migrations, storage });
  };
  for (const _ of ["once", "once more"]) {
    const failing = migrate(({ id }) => {
      if (id === "f2") throw new Error("This row is like no other.");
      return "red";
    });
    await expect(failing).rejects.toThrow("NOT_CARRIED_OVER");
  }
  const again = await openAccountDatabase(user, () => conflictHandler, { schemas, migrations: {}, storage });
  expect(await Promise.all(ids.map((id) => stored(again, "facts", id)))).toEqual(storedBefore);
  await again.close();

  const after = await migrate(() => "green");
  const rows = (await after.facts.find().exec()).map((row) => row.toJSON());
  expect(rows).toMatchObject(ids.map((id) => ({ id, colour: expect.any(String) })));
  await after.close();
});
