/** An edit of a deleted row does not add content to its tombstone. Uses the real database. */

import { editRow } from "../../../web/src/storage/editRow.ts";
import { changeFact } from "../../../web/src/backend/memory/facts.ts";
import { deleteDocuments, deleteRow } from "../../../web/src/backend/deletion/deletion.ts";
import { contextOf, insert, openRows, stored } from "../device.ts";

test("an edit after a delete does not change the tombstone", async () => {
  const records = await openRows();
  await insert(records, "documents", { id: "d" });
  await insert(records, "vectorEmbeddings", { id: "d.0", documentId: "d", block: 0 });
  const block = (await records.vectorEmbeddings.findOne("d.0").exec())!; // as the embedding task holds the row
  await deleteDocuments(contextOf(records), ["d"]);
  const before = await stored(records, "vectorEmbeddings", "d.0");
  await editRow(block, (row) => ({ ...row, model: "m", dims: 1, embedding: "c2VjcmV0" }));
  expect(await stored(records, "vectorEmbeddings", "d.0")).toEqual(before);
  expect(before["_deleted"]).toBe(true);
});

test("an edit concurrent with a delete leaves the tombstone empty", async () => {
  const records = await openRows();
  await insert(records, "facts", { id: "f" });
  const context = contextOf(records);
  await Promise.all([deleteRow(context, "facts", "f"), changeFact(context, "f", { value: "a secret" })]);
  const tombstone = await stored(records, "facts", "f");
  expect(tombstone["_deleted"]).toBe(true);
  expect(JSON.stringify(tombstone)).not.toContain("secret");
});
