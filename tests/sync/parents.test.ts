/** Plain clients: children may arrive before their parents, or while their parents are rejected. */

import { block, document, episode, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, laptop, phone, user, withTwoDevices } from "./setup.ts";

withTwoDevices(["documents", "vectorEmbeddings", "sessions", "episodes"]);

const ids = async (collection: string) =>
  (await harness.rows(user, collection)).filter((row) => !row["_deleted"]).map((row) => row["id"]);

test("an episode pushed before its session appears with the session", async () => {
  await laptop.online();
  await phone.insert("episodes", episode("e", "s"));
  await phone.online();
  await phone.settled();
  expect(phone.pushes.flatMap((push) => push.response)).toEqual([]); // accepted
  expect(await ids("episodes")).toEqual([]); // but not visible yet
  await phone.insert("sessions", session("s"));
  // Each collection has its own stream, so either may arrive first on the other device.
  for (const [collection, id] of [
    ["episodes", "e"],
    ["sessions", "s"],
  ] as const)
    await eventually(`${collection} arrive`, async () => (await laptop.row(collection, id)) !== undefined);
});

test("a document accepted on retry has all its blocks", async () => {
  await phone.insert("documents", ...Array.from({ length: 100 }, (_, i) => document(`d${i}`, user)));
  await phone.online();
  const blocks = [0, 1, 2].map((number) => block("late", number, [`part ${number}`, `more of ${number}`]));
  await phone.insert("vectorEmbeddings", ...blocks);
  await phone.insert("documents", document("late", user, { chunkCount: 6 }));
  await eventually(
    "it is rejected",
    async () => (await phone.row("documents", "late")).syncError?.code === "DOCUMENT_LIMIT",
  );
  await phone.settled();
  expect(await ids("vectorEmbeddings")).toEqual([]);
  expect((await phone.rows("vectorEmbeddings")).length).toBe(3); // still on the device, without an error
  expect((await phone.rows("vectorEmbeddings")).filter((row) => row.syncError)).toEqual([]);

  await phone.remove("documents", "d0");
  await phone.settled();
  await phone.edit("documents", "late", () => ({ syncError: undefined }));
  await laptop.online();
  await eventually("the blocks arrive", async () => (await laptop.rows("vectorEmbeddings")).length === 3);
  expect(await laptop.row("documents", "late")).toMatchObject({ chunkCount: 6 });
  const text = (await laptop.rows("vectorEmbeddings"))
    .sort((a, b) => a.block - b.block)
    .flatMap((b) => b.chunks);
  expect(text).toEqual(blocks.flatMap((b) => b.chunks));
});

test("blocks pushed after their document's deletion are removed", async () => {
  await phone.insert("documents", document("d", user));
  await Promise.all([phone.online(), laptop.online()]);
  await eventually("both have it", async () => (await laptop.row("documents", "d")) !== undefined);
  await phone.offline();
  await phone.insert("vectorEmbeddings", block("d", 0, ["secret"]));
  await laptop.remove("documents", "d");
  await laptop.settled();
  await phone.online();
  await eventually("the block is removed", async () => (await phone.rows("vectorEmbeddings")).length === 0);
  expect(JSON.stringify(await harness.rows(user, "vectorEmbeddings"))).not.toContain("secret");
});
