/** "Forget everything" while a device is offline: the device restores no old row and loses no new one. */

import { block, Device, document, episode, memory, now, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

const forgetEverything = () =>
  harness.request<{ leftovers: number; at: string }>(user, "/v1/forget", {
    method: "POST",
    body: JSON.stringify({ confirm: "forget everything" }),
  });

/** Insert two sessions with the same external id, of which the server accepts one and rejects one. */
async function insertRejectedRow(device: Device): Promise<void> {
  await device.insert("sessions", session("accepted", { externalId: "x" }));
  await device.sync?.awaitInSync();
  await device.insert("sessions", session("rejected", { title: "secret rejected", externalId: "x" }));
  await eventually("it is rejected", async () => (await errorCodes(device))["rejected"] === "DUPLICATE");
}

const errorCodes = async (device: Device) =>
  Object.fromEntries((await device.rows("sessions")).map((row) => [row.id, row.syncError?.code]));

/** Return a row from the device's storage as JSON, also if it is deleted. */
const readStorage = async (device: Device, id: string, name = "sessions") =>
  JSON.stringify(await device.collection(name).storageInstance.findDocumentsById([id], true));

test("forget everything keeps a device's rows that the server never stored", async () => {
  const phone = await Device.make(harness, user, ["documents", "sessions"]);
  await phone.insert(
    "sessions",
    session("old"),
    session("old-edited"),
    session("accepted", { externalId: "x" }),
  );
  await phone.insert("documents", document("old", user));
  await phone.online();
  await phone.insert("sessions", session("rejected", { externalId: "x" }));
  await eventually(
    "it is rejected",
    async () => (await phone.row("sessions", "rejected")).syncError?.code === "DUPLICATE",
  );
  await phone.offline();
  await phone.edit("sessions", "old-edited", () => ({ title: "secret edit" }));
  await phone.insert("sessions", session("unsent", { title: "secret unsent" })); // never sent

  const receipt = await forgetEverything();
  expect(receipt).toMatchObject({ leftovers: 0, rows: 4 });
  await new Promise((resolve) => setTimeout(resolve, 5));
  await phone.insert("sessions", session("new", { createdAt: now(), updatedAt: now() }));

  await phone.online();
  await eventually("the new row is stored", async () =>
    (await harness.rows(user, "sessions")).some((row) => row["id"] === "new" && !row["_deleted"]),
  );
  await eventually(
    "the old rows are deleted",
    async () => (await phone.row("sessions", "old-edited")) === undefined,
  );
  await phone.settled();
  // Rows that the server had stored are removed from the device. Rows that it never stored remain, with an error.
  expect(await errorCodes(phone)).toEqual({ rejected: "DUPLICATE", unsent: "FORGOTTEN", new: undefined });
  expect(await phone.rows("documents")).toEqual([]);
  const rows = JSON.stringify(await harness.rows(user, "sessions"));
  expect(rows).not.toContain("secret");

  // A retry of the rejected row is now rejected because the row is older than forget everything.
  await phone.edit("sessions", "rejected", () => ({ externalId: "free", syncError: undefined }));
  await eventually(
    "the code changes",
    async () => (await phone.row("sessions", "rejected")).syncError?.code === "FORGOTTEN",
  );
  await phone.close();
});

test("'forget everything' on one device removes rejected rows on another", async () => {
  const phone = await Device.make(harness, user, ["documents", "sessions"], true);
  await phone.startAppSync();
  await insertRejectedRow(phone);
  expect(await readStorage(phone, "rejected")).toContain("secret");
  await forgetEverything();
  await eventually("no row remains", async () => (await phone.rows("sessions")).length === 0);
  expect(await readStorage(phone, "rejected")).not.toContain("secret");
  await phone.sync?.awaitInSync();
  expect(await harness.liveRows(user, "sessions")).toEqual([]);
  await phone.close();
});

test("forget everything removes rows waiting on the server, not unsent rows", async () => {
  const phone = await Device.make(
    harness,
    user,
    ["episodes", "vectorEmbeddings", "sessions", "documents"],
    true,
  );
  await phone.startAppSync();
  await insertRejectedRow(phone);
  await phone.insert("episodes", episode("held", "rejected", { userMessage: "secret held" }));
  await phone.insert("vectorEmbeddings", block("gone", 0, ["secret text"])); // its document never arrives
  await phone.sync?.awaitInSync();
  expect(await harness.rows(user, "episodes")).toEqual([]); // both rows wait on the server for their parents
  await phone.sync?.stop();
  await phone.insert("sessions", session("unsent"));
  await phone.insert("episodes", episode("of-unsent", "unsent"));
  await forgetEverything();
  await new Promise((resolve) => setTimeout(resolve, 5));
  await phone.insert("episodes", episode("new", "to-come", { createdAt: now(), updatedAt: now() }));

  await phone.startAppSync();
  await eventually("rejected rows are gone", async () => {
    const remaining = [await phone.rows("episodes"), await phone.rows("vectorEmbeddings")].flat();
    return remaining.map(({ id }) => id).join() === "new,of-unsent";
  });
  expect(await readStorage(phone, "held", "episodes")).not.toContain("secret");
  expect(await readStorage(phone, "gone.0", "vectorEmbeddings")).not.toContain("secret");
  await phone.close();
});

test("rejected rows are removed only once after forget everything", async () => {
  const known = memory();
  const phone = await Device.make(harness, user, ["documents", "sessions"], true);
  await phone.startAppSync(known);
  await insertRejectedRow(phone);
  await phone.sync?.stop();
  await phone.insert("sessions", session("unsent"));
  const { at } = await forgetEverything();

  await phone.startAppSync(known);
  await eventually(
    "rejected rows are gone",
    async () => (await phone.row("sessions", "rejected")) === undefined,
  );
  await eventually(
    "the unsent row is rejected and remains",
    async () => JSON.stringify(await errorCodes(phone)) === JSON.stringify({ unsent: "FORGOTTEN" }),
  );
  expect((await known.load()).forgottenAt).toBe(at);

  // Rejected rows are removed only once: a later start keeps a row although its error is older.
  await phone.sync?.stop();
  const syncError = { code: "DUPLICATE", message: "", at: "2026-01-01T00:00:00.000Z" };
  await phone.edit("sessions", "unsent", () => ({ syncError }));
  await phone.startAppSync(known);
  await phone.sync?.awaitInSync();
  expect(await phone.row("sessions", "unsent")).toBeDefined();
  await phone.close();
});

test("a row rejected after forget everything stays on the device", async () => {
  const phone = await Device.make(harness, user, ["documents", "sessions"], true);
  await forgetEverything();
  await phone.insert("sessions", session("unsent"));
  await phone.online();
  await eventually("it is rejected", async () => (await errorCodes(phone))["unsent"] === "FORGOTTEN");
  await phone.offline();
  const known = memory();
  await phone.startAppSync(known);
  await eventually("forgottenAt is handled", async () => (await known.load()).forgottenAt !== undefined);
  expect(await errorCodes(phone)).toEqual({ unsent: "FORGOTTEN" });
  await phone.close();
});
