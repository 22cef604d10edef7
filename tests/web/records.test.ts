/** The device's own database: how many collections it has, and how rows of an older schema are opened. */

import { randomUUID } from "node:crypto";
import { getRxStorageMemory } from "rxdb/plugins/storage-memory";
import { NON_PREMIUM_COLLECTION_LIMIT } from "rxdb/plugins/core";
import { open } from "../../web/src/engines/records/records.ts";
import { schemas, type Schemas } from "../../web/src/engines/records/schemas.ts";
import { conflictHandler } from "../../web/src/engines/sync/sync.ts";

test("there are ten collections, and RxDB opens as many", () => {
  expect(Object.keys(schemas)).toHaveLength(10);
  expect(NON_PREMIUM_COLLECTION_LIMIT).toBeGreaterThan(10);
});

test("rows of an older schema are brought to the new one when the app is opened", async () => {
  const [user, storage] = [randomUUID(), getRxStorageMemory()];
  const before = await open(user, () => conflictHandler, { schemas, migrations: {}, storage });
  const at = "2026-01-01T00:00:00.000Z";
  const fact = { key: "user.name", value: "Ada", sourceRemoved: false, confidence: 1, confirmed: true };
  await before.facts.insert({ id: "f1", createdAt: at, updatedAt: at, ...fact });
  await before.close();

  const { properties, ...rest } = schemas.facts;
  const newer = { ...rest, version: 1, properties: { ...properties, colour: { type: "string" } } };
  const made = { ...schemas, facts: newer } as unknown as Schemas;
  const migrations = { facts: { 1: (row: object) => ({ ...row, colour: "green" }) } };
  const after = await open(user, () => conflictHandler, { schemas: made, migrations, storage });
  expect((await after.facts.findOne("f1").exec())?.toJSON()).toMatchObject({ value: "Ada", colour: "green" });
  await after.close();
});
