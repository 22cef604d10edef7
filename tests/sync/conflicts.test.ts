/** Two devices that did not know of each other. Unmodified clients: the server merges. */

import { Device, document, fact, now, session, T } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, laptop, phone, user, withTwoDevices } from "./setup.ts";

withTwoDevices(["documents", "sessions", "entities", "facts", "projects"], true);

/** Both devices hold these rows and are without a network. */
async function bothHold(collection: string, ...rows: { id: string }[]): Promise<void> {
  await phone.insert(collection, ...rows);
  await Promise.all([phone.online(), laptop.online()]);
  await eventually("both hold it", async () => (await laptop.rows(collection)).length === rows.length);
  await Promise.all([phone.offline(), laptop.offline()]);
}

const onServer = async (collection: string, id: string) =>
  (await harness.rows(user, collection)).find((row) => row["id"] === id);

const borrow = (sessionId: string) => (row: any) => ({ activeSessions: [...row.activeSessions, sessionId] });

const use = (row: any) => ({ accessCount: row.accessCount + 1, lastAccessedAt: now() });

test("two borrows into different sessions both survive, and two uses count as two", async () => {
  await phone.insert("sessions", session("sp"), session("sl"));
  await bothHold("documents", document("d", user));
  await phone.edit("documents", "d", (row) => ({ ...borrow("sp")(row), ...use(row) }));
  await laptop.edit("documents", "d", (row) => ({ ...borrow("sl")(row), ...use(row) }));
  await phone.online();
  await laptop.online();
  for (const device of [phone, laptop]) {
    await eventually("both borrows are here", async () => {
      const row = await device.row("documents", "d");
      return row.activeSessions.length === 2 && row.accessCount === 2;
    });
    expect(new Set((await device.row("documents", "d")).activeSessions)).toEqual(new Set(["sp", "sl"]));
  }
  expect(await onServer("documents", "d")).toMatchObject({ accessCount: 2 });
});

test("the app's conflict handler keeps what the server merged", async () => {
  const tablet = await Device.make(harness, user, ["documents", "sessions"], true);
  onTestFinished(() => tablet.close());
  await phone.insert("sessions", session("sp"), session("st"));
  await phone.insert("documents", document("d", user));
  await Promise.all([phone.online(), tablet.online()]);
  await eventually("both hold it", async () => (await tablet.rows("documents")).length === 1);
  await tablet.offline();
  await phone.edit("documents", "d", borrow("sp"));
  await phone.settled();
  await tablet.edit("documents", "d", borrow("st"));
  await tablet.online();
  for (const device of [phone, tablet]) {
    await eventually("both borrows are here", async () => {
      const { activeSessions } = await device.row("documents", "d");
      return activeSessions.toSorted().join() === "sp,st";
    });
  }
  expect((await onServer("documents", "d"))!["activeSessions"].sort()).toEqual(["sp", "st"]);
});

test("an answer is lost and the push repeated: nothing counts twice", async () => {
  await phone.insert("sessions", session("sp"));
  await bothHold("documents", document("d", user));
  await phone.edit("documents", "d", (row) => ({ ...borrow("sp")(row), ...use(row) }));
  await harness.ask("freeze", { drop_next_answer: "documents" });
  await phone.online();
  await laptop.online();
  await eventually("the borrow arrives", async () => (await laptop.row("documents", "d")).accessCount === 1);
  expect(await harness.ask("dropped")).toEqual({ yes: true });
  expect(await phone.row("documents", "d")).toMatchObject({ activeSessions: ["sp"], accessCount: 1 });
  expect(await onServer("documents", "d")).toMatchObject({ activeSessions: ["sp"], accessCount: 1 });
});

test("an answer is lost, another device borrows meanwhile, and the push is repeated", async () => {
  await phone.insert("sessions", session("sp"), session("sl"));
  await bothHold("documents", document("d", user));
  await laptop.online();
  await phone.edit("documents", "d", borrow("sp"));
  await harness.ask("freeze", { drop_next_answer: "documents" });
  const asked = phone.online();
  await laptop.edit("documents", "d", borrow("sl"));
  await asked;
  for (const device of [phone, laptop]) {
    await eventually("two borrows", async () => {
      const row = await device.row("documents", "d");
      return row.activeSessions.length === 2;
    });
  }
  expect(await harness.ask("dropped")).toEqual({ yes: true });
  expect((await onServer("documents", "d"))!["activeSessions"].sort()).toEqual(["sl", "sp"]);
});

test("delete against edit: deletion wins on both", async () => {
  await bothHold("facts", fact("f"));
  await phone.remove("facts", "f");
  await laptop.edit("facts", "f", () => ({ value: "secret edit" }));
  await phone.online();
  await laptop.online();
  await eventually("it is gone there too", async () => (await laptop.row("facts", "f")) === undefined);
  expect(await onServer("facts", "f")).toMatchObject({ _deleted: true, value: "" });
});

test("edit first, then the delete of one who did not know: deletion wins on both", async () => {
  await bothHold("facts", fact("f"));
  await laptop.edit("facts", "f", () => ({ value: "edit" }));
  await laptop.online();
  await eventually("the edit is up", async () => (await onServer("facts", "f"))?.["value"] === "edit");
  await phone.remove("facts", "f");
  await phone.online();
  await eventually("it is gone here too", async () => (await laptop.row("facts", "f")) === undefined);
  expect(await onServer("facts", "f")).toMatchObject({ _deleted: true });
});

test("two devices that find the same entity make one row", async () => {
  await bothHold("projects", { id: "p", createdAt: T, updatedAt: T, name: "House" } as never);
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
  await eventually("both hold the same", async () => {
    const [a, b] = [await phone.row("entities", "e-same"), await laptop.row("entities", "e-same")];
    return a.notes === b.notes;
  });
  expect((await harness.rows(user, "entities")).length).toBe(1);
});

/** The phone's edit was refused and is marked there; the queue went on. */
async function phoneHoldsARefusedEdit(): Promise<void> {
  await bothHold("sessions", session("s"), session("other", { externalId: "x" }));
  await phone.edit("sessions", "s", () => ({ externalId: "x" }));
  await phone.online();
  await eventually(
    "it is refused",
    async () => (await phone.row("sessions", "s")).syncError?.code === "DUPLICATE",
  );
  await phone.insert("sessions", session("after"));
  await eventually("the next is up", async () => (await onServer("sessions", "after")) !== undefined);
}

async function laptopRenames(): Promise<void> {
  await laptop.online();
  await laptop.edit("sessions", "s", () => ({ title: "renamed there" }));
  await eventually(
    "the change is up",
    async () => (await onServer("sessions", "s"))?.["title"] === "renamed there",
  );
}

async function allHold(expected: object): Promise<void> {
  for (const device of [phone, laptop]) {
    await eventually("every device holds it", async () => {
      const row = await device.row("sessions", "s");
      return Object.entries(expected).every(([name, value]) => row[name] === value) && !row.syncError;
    });
  }
  expect(await onServer("sessions", "s")).toMatchObject(expected);
}

test("a refused edit, then another device's change arrives, then a retry: both changes stand", async () => {
  await phoneHoldsARefusedEdit();
  await laptopRenames();
  await eventually("it takes the place of the marked row", async () => {
    const row = await phone.row("sessions", "s");
    return row.title === "renamed there" && !row.syncError;
  });
  await phone.edit("sessions", "s", () => ({ externalId: "y" }));
  await allHold({ title: "renamed there", externalId: "y" });
});

test("a refused edit, another device's change unseen, and a retry: merged, and the queue is not held up", async () => {
  await phoneHoldsARefusedEdit();
  await phone.offline();
  await laptopRenames();
  await phone.edit("sessions", "s", () => ({ mode: "authoritative", syncError: undefined }));
  await phone.insert("sessions", session("later"));
  await phone.online();
  await allHold({ title: "renamed there", mode: "authoritative" });
  expect((await onServer("sessions", "s"))?.["externalId"]).toBeUndefined(); // the server never took it
  expect(await onServer("sessions", "later")).toBeDefined();
});
