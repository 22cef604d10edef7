/** "Forget everything" while a device is away: it cannot bring anything back, and loses nothing that is new. */

import { block, Device, document, episode, memory, now, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

const forgetEverything = () =>
  harness.call<{ leftovers: number; at: string }>(user, "/v1/forget", {
    method: "POST",
    body: JSON.stringify({ confirm: "forget everything" }),
  });

/** One row is taken by the server and one is refused: two sessions of the same name elsewhere. */
async function withRefusedRow(device: Device): Promise<void> {
  const taken = session("taken", { externalId: "x" });
  await device.insert("sessions", taken);
  await device.sync?.awaitInSync();
  await device.insert("sessions", session("refused", { title: "secret refused", externalId: "x" }));
  await eventually("it is refused", async () => (await refusals(device))["refused"] === "DUPLICATE");
}

const refusals = async (device: Device) =>
  Object.fromEntries((await device.rows("sessions")).map((row) => [row.id, row.syncError?.code]));

/** What lies in the device's storage, deleted rows too. */
const stored = async (device: Device, id: string, name = "sessions") =>
  JSON.stringify(await device.of(name).storageInstance.findDocumentsById([id], true));

test("forget everything while a device holds old, refused and new rows", async () => {
  const phone = await Device.make(harness, user, ["documents", "sessions"]);
  await phone.insert(
    "sessions",
    session("old"),
    session("old-edited"),
    session("taken", { externalId: "x" }),
  );
  await phone.insert("documents", document("old", user));
  await phone.online();
  await phone.insert("sessions", session("refused", { externalId: "x" }));
  await eventually(
    "it is refused",
    async () => (await phone.row("sessions", "refused")).syncError?.code === "DUPLICATE",
  );
  await phone.offline();
  await phone.edit("sessions", "old-edited", () => ({ title: "secret edit" }));
  await phone.insert("sessions", session("unsent", { title: "secret unsent" })); // made before, never sent

  const receipt = await forgetEverything();
  expect(receipt).toMatchObject({ leftovers: 0, rows: 4 });
  await new Promise((resolve) => setTimeout(resolve, 5));
  await phone.insert("sessions", session("new", { createdAt: now(), updatedAt: now() }));

  await phone.online();
  await eventually("the new one is up", async () =>
    (await harness.rows(user, "sessions")).some((row) => row["id"] === "new" && !row["_deleted"]),
  );
  await eventually("the old ones go", async () => (await phone.row("sessions", "old-edited")) === undefined);
  await phone.settled();
  // What was stored is gone from the device; what never was stays there, marked, in its owner's hands.
  const here = Object.fromEntries((await phone.rows("sessions")).map((row) => [row.id, row.syncError?.code]));
  expect(here).toEqual({ refused: "DUPLICATE", unsent: "FORGOTTEN", new: undefined });
  expect(await phone.rows("documents")).toEqual([]);
  const rows = JSON.stringify(await harness.rows(user, "sessions"));
  expect(rows).not.toContain("secret");

  // A retry of the refused one is told why it does not go up any more.
  await phone.edit("sessions", "refused", () => ({ externalId: "free", syncError: undefined }));
  await eventually(
    "it says so",
    async () => (await phone.row("sessions", "refused")).syncError?.code === "FORGOTTEN",
  );
  await phone.close();
});

test("what was refused before goes from the app's devices when everything is forgotten elsewhere", async () => {
  const phone = await Device.make(harness, user, ["documents", "sessions"], true);
  await phone.own();
  await withRefusedRow(phone);
  expect(await stored(phone, "refused")).toContain("secret");
  await forgetEverything();
  await eventually("nothing is left", async () => (await phone.rows("sessions")).length === 0);
  expect(await stored(phone, "refused")).not.toContain("secret");
  await phone.sync?.awaitInSync();
  expect(await harness.live(user, "sessions")).toEqual([]);
  await phone.close();
});

test("what belongs to a refused row goes with it, and what belongs to a row that stays does not", async () => {
  const phone = await Device.make(
    harness,
    user,
    ["episodes", "vectorEmbeddings", "sessions", "documents"],
    true,
  );
  await phone.own();
  await withRefusedRow(phone);
  await phone.insert("episodes", episode("held", "refused", { userMessage: "secret held" }));
  await phone.insert("vectorEmbeddings", block("gone", 0, ["secret text"])); // of a document that never came
  await phone.sync?.awaitInSync();
  expect(await harness.rows(user, "episodes")).toEqual([]); // they wait on the server, for their parents
  await phone.sync?.stop();
  await phone.insert("sessions", session("unsent"));
  await phone.insert("episodes", episode("of-unsent", "unsent"));
  await forgetEverything();
  await new Promise((resolve) => setTimeout(resolve, 5));
  await phone.insert("episodes", episode("new", "to-come", { createdAt: now(), updatedAt: now() }));

  await phone.own();
  await eventually("what was refused is gone", async () => {
    const left = [await phone.rows("episodes"), await phone.rows("vectorEmbeddings")].flat();
    return left.map(({ id }) => id).join() === "new,of-unsent";
  });
  expect(await stored(phone, "held", "episodes")).not.toContain("secret");
  expect(await stored(phone, "gone.0", "vectorEmbeddings")).not.toContain("secret");
  await phone.close();
});

test("a device that was away drops what was refused before and keeps what is refused since, once", async () => {
  const known = memory();
  const phone = await Device.make(harness, user, ["documents", "sessions"], true);
  await phone.own(known);
  await withRefusedRow(phone);
  await phone.sync?.stop();
  await phone.insert("sessions", session("unsent"));
  const { at } = await forgetEverything();

  await phone.own(known);
  await eventually(
    "what was refused is gone",
    async () => (await phone.row("sessions", "refused")) === undefined,
  );
  await eventually(
    "what was not sent is refused and stays",
    async () => JSON.stringify(await refusals(phone)) === JSON.stringify({ unsent: "FORGOTTEN" }),
  );
  expect((await known.load()).forgottenAt).toBe(at);

  // It is done: a mark of that time, which no server sets any more, is not looked for on another visit.
  await phone.sync?.stop();
  const syncError = { code: "DUPLICATE", message: "", at: "2026-01-01T00:00:00.000Z" };
  await phone.edit("sessions", "unsent", () => ({ syncError }));
  await phone.own(known);
  await phone.sync?.awaitInSync();
  expect(await phone.row("sessions", "unsent")).toBeDefined();
  await phone.close();
});

test("what was refused since stays, also when the app learns only then that everything was forgotten", async () => {
  const phone = await Device.make(harness, user, ["documents", "sessions"], true);
  await forgetEverything();
  await phone.insert("sessions", session("unsent"));
  await phone.online();
  await eventually("it is refused", async () => (await refusals(phone))["unsent"] === "FORGOTTEN");
  await phone.offline();
  const known = memory();
  await phone.own(known);
  await eventually("it is heeded", async () => (await known.load()).forgottenAt !== undefined);
  expect(await refusals(phone)).toEqual({ unsent: "FORGOTTEN" });
  await phone.close();
});
