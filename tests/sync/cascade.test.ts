/** What is deleted elsewhere is gone from a device, with all that goes along, and nothing else: each row of the table of
 * deletions, with an unmodified client. The cases are those of tests/server/sync/test_cascade.py. */

import { readFileSync } from "node:fs";
import { block, Device, document, episode, fact, session, T } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";

type Row = { id: string; [field: string]: any };
type Case = { name: string; delete: string[]; dead: string[]; changed: Record<string, object> };
const shared: { world: Record<string, Row[]>; cases: Case[] } = JSON.parse(
  readFileSync("tests/conformance/cascade.json", "utf8"),
);
const NAMES = Object.keys(shared.world);
withUser();

const usual: Record<string, (id: string) => object> = {
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

/** A null of the table is a field that is not there. */
const without = (row: object) =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));

async function held(device: Device): Promise<Record<string, Row>> {
  const all = await Promise.all(
    NAMES.map(async (name) => (await device.rows(name)).map((row) => [`${name}/${row.id}`, row])),
  );
  return Object.fromEntries(all.flat());
}

const push = (name: string, rows: object[]) =>
  harness.call<object[]>(user, `/v1/sync/${name}/0/push`, {
    method: "POST",
    body: JSON.stringify(rows.map((newDocumentState) => ({ newDocumentState }))),
  });

async function makeWorld(): Promise<void> {
  for (const name of NAMES) {
    const rows = (shared.world[name] ?? []).map((row) => ({ ...usual[name]?.(row.id), ...row }));
    const made = rows.map((row) => ({ createdAt: T, updatedAt: T, _deleted: false, ...without(row) }));
    expect(await push(name, made)).toEqual([]);
  }
}

const ROUTES: Record<string, string> = {
  "delete all documents": "/v1/documents",
  "delete a project": "/v1/projects/p",
  "delete a project with its sessions": "/v1/projects/p?sessions=delete",
};

async function remove(one: Case): Promise<void> {
  const route = ROUTES[one.name];
  if (route) await harness.call(user, route, { method: "DELETE" });
  for (const key of route ? [] : one.delete) {
    const [name = "", id = ""] = key.split("/");
    const row = (await harness.rows(user, name)).find((found) => found["id"] === id);
    expect(await push(name, [{ ...row, _deleted: true }])).toEqual([]);
  }
}

for (const one of shared.cases) {
  test(`${one.name}: a device keeps exactly what remains, without dangling references`, async () => {
    await makeWorld();
    const device = await Device.make(harness, user, NAMES);
    await device.online();
    const world = await held(device);
    const count = Object.values(shared.world).flat().length;
    expect(Object.keys(world)).toHaveLength(count);
    await remove(one);
    await eventually(
      "it hears of all deletes",
      async () => Object.keys(await held(device)).length === count - one.dead.length,
    );
    await device.settled();
    const left = Object.entries(world).filter(([key]) => !one.dead.includes(key));
    const healed = left.map(([key, row]) => [key, without({ ...row, ...one.changed[key] })]);
    expect(await held(device)).toEqual(Object.fromEntries(healed));
    await device.close();
  });
}

test("forget everything: a device is left with no row of any collection", async () => {
  await makeWorld();
  const device = await Device.make(harness, user, NAMES);
  await device.online();
  expect(new Set(Object.keys(await held(device)).map((key) => key.split("/")[0]))).toEqual(new Set(NAMES));
  const body = JSON.stringify({ confirm: "forget everything" });
  expect(await harness.call(user, "/v1/forget", { method: "POST", body })).toMatchObject({ leftovers: 0 });
  await eventually("nothing is left", async () => Object.keys(await held(device)).length === 0);
  await device.close();
});
