/** Deletes on this device and their cascades, with the real database: cases shared with the server. */

import type { RxCollection } from "rxdb/plugins/core";
import cases from "../../../conformance/cascade.json";
import { deleteWithDependents } from "../../../../web/src/backend/deletion/cascade.ts";
import { deleteDocuments, deleteProject } from "../../../../web/src/backend/deletion/deletion.ts";
import type { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import type { AccountDatabase } from "../../../../web/src/storage/accountDatabase.ts";
import { insert, openRows, row, stored, T } from "../../device.ts";

const WORLD: Record<string, { id: string }[]> = cases.world;
const ALL = Object.entries(WORLD).flatMap(([name, rows]) => rows.map((fields) => ({ name, fields })));

async function world(): Promise<AccountDatabase> {
  const records = await openRows();
  for (const [name, rows] of Object.entries(WORLD)) await insert(records, name, ...rows);
  return records;
}

async function expectDeleted(
  records: AccountDatabase,
  { dead, changed }: (typeof cases.cases)[number],
): Promise<void> {
  for (const { name, fields } of ALL) {
    const key = `${name}/${fields.id}`;
    const now = await stored(records, name, fields.id);
    if (dead.includes(key)) {
      expect(now["_deleted"], `${key} is not deleted`).toBe(true);
      expect(JSON.stringify(now), `${key} kept its content`).not.toContain("secret");
      continue;
    }
    const whole = row(name, { ...fields, ...(changed as Record<string, object>)[key] });
    // `updatedAt` is unchanged too, because no user edited the row
    expect(now, key).toEqual({ ...whole, _deleted: false });
  }
}

test.each(cases.cases)("deleteWithDependents: $name", async (one) => {
  const records = await world();
  const keys: Record<string, string[]> = {};
  for (const key of one.delete) {
    const [name, id] = key.split("/") as [string, string];
    (keys[name] ??= []).push(id);
  }
  await deleteWithDependents(records, keys);
  await expectDeleted(records, one);
});

test.each([
  ["delete a project", false],
  ["delete a project with its sessions", true],
])("deleteProject: %s", async (name, withSessions) => {
  const records = await world();
  await deleteProject({ database: records } as AccountContext, "p", withSessions);
  await expectDeleted(
    records,
    cases.cases.find((one) => one.name === name)!,
  );
});

test("deleting a document whose row is missing deletes its blocks", async () => {
  const records = await openRows();
  await insert(records, "vectorEmbeddings", { id: "d.0", documentId: "d", block: 0 });
  await deleteDocuments({ database: records } as AccountContext, ["d"]);
  const tombstone = await stored(records, "vectorEmbeddings", "d.0");
  expect(tombstone).toMatchObject({ _deleted: true, documentId: "d", createdAt: T });
  expect(JSON.stringify(tombstone)).not.toContain("secret");
});

test("deleting a document removes its blocks before its row", async () => {
  const records = await world();
  const keys: string[] = [];
  for (const { name, $ } of [records.vectorEmbeddings, records.documents] as RxCollection[]) {
    $.subscribe(({ operation, documentId }) => operation === "DELETE" && keys.push(`${name}/${documentId}`));
  }
  await deleteDocuments({ database: records } as AccountContext, ["d"]);
  expect(keys).toEqual(["vectorEmbeddings/d.0", "vectorEmbeddings/d.1", "documents/d"]);
});
