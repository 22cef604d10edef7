/** Two plain clients change the same rows without having received each other's changes. The server merges them. */

import { Device, document, fact, now, session, T } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, laptop, phone, user, withTwoDevices } from "./setup.ts";

withTwoDevices(["documents", "sessions", "entities", "facts", "projects"], true);

/** Sync these rows to both devices, then take both offline. */
async function syncToBoth(collection: string, ...rows: { id: string }[]): Promise<void> {
  await phone.insert(collection, ...rows);
  await Promise.all([phone.online(), laptop.online()]);
  await eventually("both have it", async () => (await laptop.rows(collection)).length === rows.length);
  await Promise.all([phone.offline(), laptop.offline()]);
}

const onServer = async (collection: string, id: string) =>
  (await harness.rows(user, collection)).find((row) => row["id"] === id);

const borrow = (sessionId: string) => (row: any) => ({ activeSessions: [...row.activeSessions, sessionId] });

const use = (row: any) => ({ accessCount: row.accessCount + 1, lastAccessedAt: now() });

test("concurrent borrows are all kept, and concurrent uses add up", async () => {
  await phone.insert("sessions", session("sp"), session("sl"));
  await syncToBoth("documents", document("d", user));
  await phone.edit("documents", "d", (row) => ({ ...borrow("sp")(row), ...use(row) }));
  await laptop.edit("documents", "d", (row) => ({ ...borrow("sl")(row), ...use(row) }));
  await phone.online();
  await laptop.online();
  for (const device of [phone, laptop]) {
    await eventually("both borrows arrive", async () => {
      const row = await device.row("documents", "d");
      return row.activeSessions.length === 2 && row.accessCount === 2;
    });
    expect(new Set((await device.row("documents", "d")).activeSessions)).toEqual(new Set(["sp", "sl"]));
  }
  expect(await onServer("documents", "d")).toMatchObject({ accessCount: 2 });
});

test("the app's conflict handler keeps the row that the server merged", async () => {
  const tablet = await Device.make(harness, user, ["documents", "sessions"], true);
  onTestFinished(() => tablet.close());
  await phone.insert("sessions", session("sp"), session("st"));
  await phone.insert("documents", document("d", user));
  await Promise.all([phone.online(), tablet.online()]);
  await eventually("both have it", async () => (await tablet.rows("documents")).length === 1);
  await tablet.offline();
  await phone.edit("documents", "d", borrow("sp"));
  await phone.settled();
  await tablet.edit("documents", "d", borrow("st"));
  await tablet.online();
  for (const device of [phone, tablet]) {
    await eventually("both borrows arrive", async () => {
      const { activeSessions } = await device.row("documents", "d");
      return activeSessions.toSorted().join() === "sp,st";
    });
  }
  expect((await onServer("documents", "d"))!["activeSessions"].sort()).toEqual(["sp", "st"]);
});

test("a push repeated after a lost response is counted once", async () => {
  await phone.insert("sessions", session("sp"));
  await syncToBoth("documents", document("d", user));
  await phone.edit("documents", "d", (row) => ({ ...borrow("sp")(row), ...use(row) }));
  await harness.control("dropResponse", { to: "documents" });
  await phone.online();
  await laptop.online();
  await eventually("the borrow arrives", async () => (await laptop.row("documents", "d")).accessCount === 1);
  expect(await harness.control("isResponseDropped")).toEqual({ yes: true });
  expect(await phone.row("documents", "d")).toMatchObject({ activeSessions: ["sp"], accessCount: 1 });
  expect(await onServer("documents", "d")).toMatchObject({ activeSessions: ["sp"], accessCount: 1 });
});

test("a repeated push keeps another device's borrow", async () => {
  await phone.insert("sessions", session("sp"), session("sl"));
  await syncToBoth("documents", document("d", user));
  await laptop.online();
  await phone.edit("documents", "d", borrow("sp"));
  await harness.control("dropResponse", { to: "documents" });
  const online = phone.online();
  await laptop.edit("documents", "d", borrow("sl"));
  await online;
  for (const device of [phone, laptop]) {
    await eventually("two borrows", async () => {
      const row = await device.row("documents", "d");
      return row.activeSessions.length === 2;
    });
  }
  expect(await harness.control("isResponseDropped")).toEqual({ yes: true });
  expect((await onServer("documents", "d"))!["activeSessions"].sort()).toEqual(["sl", "sp"]);
});

test("a delete wins over a concurrent edit", async () => {
  await syncToBoth("facts", fact("f"));
  await phone.remove("facts", "f");
  await laptop.edit("facts", "f", () => ({ value: "secret edit" }));
  await phone.online();
  await laptop.online();
  await eventually("the laptop deletes it", async () => (await laptop.row("facts", "f")) === undefined);
  expect(await onServer("facts", "f")).toMatchObject({ _deleted: true, value: "" });
});

test("a delete wins over an earlier edit that its device had not received", async () => {
  await syncToBoth("facts", fact("f"));
  await laptop.edit("facts", "f", () => ({ value: "edit" }));
  await laptop.online();
  await eventually("the edit is stored", async () => (await onServer("facts", "f"))?.["value"] === "edit");
  await phone.remove("facts", "f");
  await phone.online();
  await eventually("the laptop deletes it", async () => (await laptop.row("facts", "f")) === undefined);
  expect(await onServer("facts", "f")).toMatchObject({ _deleted: true });
});

test("two devices create the same entity only once", async () => {
  await syncToBoth("projects", {
    id: "p",
    createdAt: T,
    updatedAt: T,
    name: "House",
    documentIds: [],
  } as never);
  const entity = (notes: string) => ({
    id: "e-same",
    createdAt: now(),
    updatedAt: now(),
    name: "Ada",
    type: "person",
    projectId: "p",
    notes,
  });
  await phone.insert("entities", entity("from the phone"));
  await laptop.insert("entities", entity("from the laptop"));
  await phone.online();
  await laptop.online();
  await eventually("both have the same row", async () => {
    const [a, b] = [await phone.row("entities", "e-same"), await laptop.row("entities", "e-same")];
    return a.notes === b.notes;
  });
  expect((await harness.rows(user, "entities")).length).toBe(1);
});

/** Make the server reject an edit of the phone, and check that a later row is still pushed. */
async function rejectEditOfPhone(): Promise<void> {
  await syncToBoth("sessions", session("s"), session("other", { externalId: "x" }));
  await phone.edit("sessions", "s", () => ({ externalId: "x" }));
  await phone.online();
  await eventually(
    "it is rejected",
    async () => (await phone.row("sessions", "s")).syncError?.code === "DUPLICATE",
  );
  await phone.insert("sessions", session("after"));
  await eventually("the next row is stored", async () => (await onServer("sessions", "after")) !== undefined);
}

async function renameOnLaptop(): Promise<void> {
  await laptop.online();
  await laptop.edit("sessions", "s", () => ({ title: "renamed there" }));
  await eventually(
    "the change is stored",
    async () => (await onServer("sessions", "s"))?.["title"] === "renamed there",
  );
}

async function expectEverywhere(expected: object): Promise<void> {
  for (const device of [phone, laptop]) {
    await eventually("the device has it", async () => {
      const row = await device.row("sessions", "s");
      return Object.entries(expected).every(([name, value]) => row[name] === value) && !row.syncError;
    });
  }
  expect(await onServer("sessions", "s")).toMatchObject(expected);
}

test("retrying a rejected edit keeps changes received since the rejection", async () => {
  await rejectEditOfPhone();
  await renameOnLaptop();
  await eventually("it replaces the rejected row", async () => {
    const row = await phone.row("sessions", "s");
    return row.title === "renamed there" && !row.syncError;
  });
  await phone.edit("sessions", "s", () => ({ externalId: "y" }));
  await expectEverywhere({ title: "renamed there", externalId: "y" });
});

test("retrying a rejected edit merges changes not received yet", async () => {
  await rejectEditOfPhone();
  await phone.offline();
  await renameOnLaptop();
  await phone.edit("sessions", "s", () => ({ mode: "authoritative", syncError: undefined }));
  await phone.insert("sessions", session("later"));
  await phone.online();
  await expectEverywhere({ title: "renamed there", mode: "authoritative" });
  expect((await onServer("sessions", "s"))?.["externalId"]).toBeUndefined(); // the server never accepted it
  expect(await onServer("sessions", "later")).toBeDefined();
});
