/**
 * A delete on the server removes the row and its dependents, and no other row, from a device with a plain client. The
 * cases are shared with tests/server/sync/test_cascade.py.
 */

import { readFileSync } from "node:fs";
import { block, Device, document, episode, fact, session, T } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";
import { syncPath } from "./wire.ts";

type Row = { id: string; [field: string]: any };
type Case = { name: string; delete: string[]; dead: string[]; changed: Record<string, object> };
const shared: { world: Record<string, Row[]>; cases: Case[] } = JSON.parse(
  readFileSync("tests/conformance/cascade.json", "utf8"),
);
const NAMES = Object.keys(shared.world);
withUser();

const defaultFields: Record<string, (id: string) => object> = {
  projects: () => ({ name: "p" }),
  sessions: (id) => session(id),
  documents: (id) => document(id, user),
  vectorEmbeddings: (id) => block(id.split(".")[0] ?? "", 0, ["words"]),
  episodes: (id) => episode(id, ""),
  facts: (id) => fact(id),
  memories: () => ({ text: "t", sessionIds: [], source: "user", pinned: false }),
  entities: (id) => ({ name: id, type: "person" }),
  relationships: () => ({ label: "knows" }),
  summaries: () => ({ content: "in short" }),
};

/** In the cases, null stands for a missing field. */
const withoutNulls = (row: object) =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));

async function rowsByKey(device: Device): Promise<Record<string, Row>> {
  const all = await Promise.all(
    NAMES.map(async (name) => (await device.rows(name)).map((row) => [`${name}/${row.id}`, row])),
  );
  return Object.fromEntries(all.flat());
}

const push = (name: string, rows: object[]) =>
  harness.request<object[]>(user, `${syncPath(name)}/push`, {
    method: "POST",
    body: JSON.stringify(rows.map((newDocumentState) => ({ newDocumentState }))),
  });

async function makeWorld(): Promise<void> {
  for (const name of NAMES) {
    const rows = (shared.world[name] ?? []).map((row) => ({ ...defaultFields[name]?.(row.id), ...row }));
    const complete = rows.map((row) => ({
      createdAt: T,
      updatedAt: T,
      _deleted: false,
      ...withoutNulls(row),
    }));
    expect(await push(name, complete)).toEqual([]);
  }
}

const ROUTES: Record<string, string> = {
  "delete all documents": "/v1/documents",
  "delete a project": "/v1/projects/p",
  "delete a project with its sessions": "/v1/projects/p?sessions=delete",
};

async function applyDeletes(deletion: Case): Promise<void> {
  const route = ROUTES[deletion.name];
  if (route) await harness.request(user, route, { method: "DELETE" });
  for (const key of route ? [] : deletion.delete) {
    const [name = "", id = ""] = key.split("/");
    const row = (await harness.rows(user, name)).find((stored) => stored["id"] === id);
    expect(await push(name, [{ ...row, _deleted: true }])).toEqual([]);
  }
}

for (const deletion of shared.cases) {
  test(`${deletion.name}: the remaining rows have no dangling references`, async () => {
    await makeWorld();
    const device = await Device.make(harness, user, NAMES);
    await device.online();
    const world = await rowsByKey(device);
    const count = Object.values(shared.world).flat().length;
    expect(Object.keys(world)).toHaveLength(count);
    await applyDeletes(deletion);
    await eventually(
      "all deletes arrive",
      async () => Object.keys(await rowsByKey(device)).length === count - deletion.dead.length,
    );
    await device.settled();
    const remaining = Object.entries(world).filter(([key]) => !deletion.dead.includes(key));
    const expected = remaining.map(([key, row]) => [key, withoutNulls({ ...row, ...deletion.changed[key] })]);
    expect(await rowsByKey(device)).toEqual(Object.fromEntries(expected));
    await device.close();
  });
}

test("forget everything removes every row from a device", async () => {
  await makeWorld();
  const device = await Device.make(harness, user, NAMES);
  await device.online();
  expect(new Set(Object.keys(await rowsByKey(device)).map((key) => key.split("/")[0]))).toEqual(
    new Set(NAMES),
  );
  const body = JSON.stringify({ confirm: "forget everything" });
  expect(await harness.request(user, "/v1/forget", { method: "POST", body })).toMatchObject({ leftovers: 0 });
  await eventually("no row remains", async () => Object.keys(await rowsByKey(device)).length === 0);
  await device.close();
});
