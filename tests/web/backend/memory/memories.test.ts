/** Edit projects and memories on a device, with the real database and no server. */

import type { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import {
  addMemory,
  restoreMemoryVersion,
  deleteMemory,
  pinMemory,
} from "../../../../web/src/backend/memory/memories.ts";
import { changeProject, moveSession } from "../../../../web/src/backend/memory/projects.ts";
import { ensureSession } from "../../../../web/src/backend/chat/sessions.ts";
import type { AccountDatabase } from "../../../../web/src/storage/accountDatabase.ts";
import { contextOf, insert, openRows, stored, T } from "../../device.ts";

let records: AccountDatabase;
let context: AccountContext;
beforeEach(async () => {
  records = await openRows();
  context = Object.assign(contextOf(records), { creationTime: () => new Date().toISOString() });
});

const at = (name: string, id: string) => stored(records, name, id);
const chain = () =>
  insert(
    records,
    "memories",
    { id: "old", text: "The rent is 900.", supersededBy: "new" },
    { id: "new", text: "The rent is 940.", supersedes: "old" },
  );

test("a new chat starts in the given project only if it exists", async () => {
  await insert(records, "projects", { id: "p" });
  await ensureSession(context, "s", "When is the rent due?", "p");
  await ensureSession(context, "t", "And the other?", "gone");
  expect(await at("sessions", "s")).toMatchObject({ projectId: "p", title: "When is the rent due?" });
  expect(await at("sessions", "t")).not.toHaveProperty("projectId");
});

test("a chat can be moved into a project and out again", async () => {
  await insert(records, "sessions", { id: "s" });
  await moveSession(context, "s", "p");
  expect(await at("sessions", "s")).toMatchObject({ projectId: "p" });
  await moveSession(context, "s", null);
  expect(await at("sessions", "s")).not.toHaveProperty("projectId");
});

test("clearing a project's description removes the field", async () => {
  await insert(records, "projects", { id: "p", description: "secret" });
  await changeProject(context, "p", { name: "Flat", description: "" });
  const row = await at("projects", "p");
  expect(row).toMatchObject({ name: "Flat" });
  expect(row).not.toHaveProperty("description");
});

test("adding a memory again refreshes it, but only within its scope", async () => {
  await insert(records, "memories", { id: "m", text: "Short answers." });
  expect(await addMemory(context, "short answers.", null)).toBe("m");
  expect((await at("memories", "m"))["updatedAt"]).not.toBe(T);
  expect(await addMemory(context, "Short answers.", "p")).not.toBe("m");
});

test("pinning a memory does not change its update time", async () => {
  await insert(records, "memories", { id: "m" });
  await pinMemory(context, "m", true);
  expect(await at("memories", "m")).toMatchObject({ pinned: true, updatedAt: T });
});

test("restoring an earlier memory version supersedes the later one", async () => {
  await chain();
  await restoreMemoryVersion(context, "old");
  const [old, later] = [await at("memories", "old"), await at("memories", "new")];
  expect(old).toMatchObject({ supersedes: "new" });
  expect(old).not.toHaveProperty("supersededBy");
  expect(old["updatedAt"]).not.toBe(T);
  expect(later).toMatchObject({ supersededBy: "old", updatedAt: T });
  expect(later).not.toHaveProperty("supersedes");
});

test("deleting a memory deletes its earlier versions", async () => {
  await chain();
  await deleteMemory(context, "new");
  for (const id of ["old", "new"]) {
    const row = await at("memories", id);
    expect(row["_deleted"]).toBe(true);
    expect(JSON.stringify(row)).not.toContain("rent");
  }
});
