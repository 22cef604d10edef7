/** Plain clients reach limits. No row is lost or blocks other rows, and rejected rows can be retried later. */

import { Device, document, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

test("of 120 documents, the server stores 100 and rejects 20", async () => {
  const devices: Device[] = [];
  for (const name of ["a", "b"]) {
    const device = await Device.make(harness, user, ["documents", "sessions"]);
    await device.insert("documents", ...Array.from({ length: 60 }, (_, i) => document(`${name}${i}`, user)));
    devices.push(device);
  }
  await Promise.all(devices.map((device) => device.online()));

  const onServer = async () => (await harness.rows(user, "documents")).filter((row) => !row["_deleted"]);
  const marked = async (device: Device) => (await device.rows("documents")).filter((row) => row.syncError);
  await eventually("100 are stored", async () => (await onServer()).length === 100);
  await eventually(
    "20 are marked",
    async () => (await Promise.all(devices.map(marked))).flat().length === 20,
  );
  const rejected = (await Promise.all(devices.map(marked))).flat();
  expect(new Set(rejected.map((row) => row.syncError.code))).toEqual(new Set(["DOCUMENT_LIMIT"]));
  const stored = new Set((await onServer()).map((row) => row["id"]));
  expect(rejected.filter((row) => stored.has(row.id))).toEqual([]);
  expect(new Set([...stored, ...rejected.map((row) => row.id)]).size).toBe(120); // no document is lost

  // Other rows of both devices are still pushed.
  for (const [i, device] of devices.entries()) await device.insert("sessions", session(`s${i}`));
  await eventually(
    "the sessions are stored",
    async () => (await harness.rows(user, "sessions")).length === 2,
  );

  // A marked row is not retried automatically.
  const pushes = devices.flatMap((device) => device.pushes).length;
  for (const device of devices) await device.settled();
  expect(devices.flatMap((device) => device.pushes).length).toBe(pushes);

  // When other documents have been deleted, an edit of the marked rows makes the server store them.
  const deleted = [...stored].slice(0, 20) as string[];
  const [first] = devices as [Device];
  await eventually("the first device has all 100", async () => (await first.rows("documents")).length >= 100);
  for (const id of deleted) await first.remove("documents", id);
  await eventually("80 remain", async () => (await onServer()).length === 80);
  for (const device of devices) {
    for (const row of await marked(device))
      await device.edit("documents", row.id, () => ({ syncError: undefined }));
  }
  await eventually("100 are stored again", async () => (await onServer()).length === 100);
  await eventually(
    "no row is marked",
    async () => (await Promise.all(devices.map(marked))).flat().length === 0,
  );
  await eventually("both devices have all", async () =>
    (await Promise.all(devices.map((device) => device.rows("documents")))).every(
      (rows) => rows.length === 100,
    ),
  );
  await Promise.all(devices.map((device) => device.close()));
});

test("an account at the document limit accepts edits, deletes and swaps", async () => {
  const device = await Device.make(harness, user, ["documents"]);
  await device.insert("documents", ...Array.from({ length: 100 }, (_, i) => document(`d${i}`, user)));
  await device.online();
  await device.offline();
  await device.edit("documents", "d1", () => ({ filename: "renamed.txt" }));
  await device.insert("documents", document("new", user));
  await device.remove("documents", "d0");
  await device.online();
  await eventually("the swap is stored", async () =>
    (await harness.rows(user, "documents")).some((row) => row["id"] === "new" && !row["_deleted"]),
  );
  const rows = await harness.rows(user, "documents");
  expect(rows.filter((row) => !row["_deleted"]).length).toBe(100);
  expect(rows.find((row) => row["id"] === "d1")).toMatchObject({ filename: "renamed.txt" });
  expect((await device.rows("documents")).filter((row) => row.syncError)).toEqual([]);
  await device.close();
});
