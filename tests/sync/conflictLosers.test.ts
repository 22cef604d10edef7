/** A row edited offline was deleted on another device. The row stays deleted, and the app keeps the edited text. */

import type { DeviceDatabase, DeviceAccount, ConflictLoser } from "../../web/src/storage/deviceDatabase.ts";
import type { AccountContext } from "../../web/src/backend/account/accountContext.ts";
import { keepConflictLosers, watchReplacedRows } from "../../web/src/backend/sync/conflictLosers.ts";
import type { Collections } from "../../web/src/core/schema/rows.ts";
import { Device, episode, fact, memory, now, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";
import { syncPath } from "./wire.ts";

withUser();

/** The conflict losers that the device stores, by id. */
let losers: Map<string, ConflictLoser>;
let account: Partial<DeviceAccount>;
let laptop: Device;
const NAMES = ["sessions", "episodes", "facts"] as const;

beforeEach(async () => {
  [losers, account, store] = [new Map(), {}, memory()];
  const known = {
    accounts: { get: async () => account },
    lost: { put: async (lost: ConflictLoser) => void losers.set(lost.id, lost) },
    deleteConflictLosers: async (_: string, collection: string, ids: string[], here: boolean) => {
      for (const { id, collection: of, rowId, gone } of losers.values()) {
        if (of === collection && ids.includes(rowId) && (here || !gone)) losers.delete(id);
      }
    },
  } as unknown as DeviceDatabase;
  const { userId } = user;
  const of = (name: string) =>
    keepConflictLosers(known, userId, name as keyof Collections, () => laptop.db.collections[name]!);
  laptop = await Device.make(harness, user, [...NAMES], of);
  watchReplacedRows({ device: known, account: { userId }, database: laptop.db } as unknown as AccountContext);
  await laptop.insert("sessions", session("s"));
  await laptop.insert("facts", fact("f"));
  await startSync();
  await eventually("it is stored", async () => (await harness.rows(user, "facts")).length === 1);
  await laptop.sync!.stop();
});
afterEach(() => laptop.close());

let store = memory();
async function startSync(): Promise<void> {
  await laptop.startAppSync(store);
}

async function deleteOnServer(collection: string, id: string): Promise<void> {
  const row = (await harness.rows(user, collection)).find((stored) => stored["id"] === id);
  const body = JSON.stringify([{ newDocumentState: { ...row, _deleted: true } }]);
  expect(await harness.request(user, `${syncPath(collection)}/push`, { method: "POST", body })).toEqual([]);
}

async function waitUntilDeleted(collection: string, id: string): Promise<void> {
  await eventually("the row is deleted", async () => (await laptop.row(collection, id)) === undefined);
  await laptop.sync!.awaitInSync();
  await new Promise((resolve) => setTimeout(resolve, 200)); // time for the listeners to run
}

const newTurn = (more: object = {}) =>
  episode("e", "s", {
    createdAt: now(),
    updatedAt: now(),
    userMessage: "Why?",
    aiResponse: "Because.",
    ...more,
  });

test("an unsent turn of a chat deleted elsewhere becomes a conflict loser", async () => {
  await laptop.insert("episodes", newTurn());
  await deleteOnServer("sessions", "s");
  await startSync();
  await waitUntilDeleted("episodes", "e");
  expect([...losers.values()]).toMatchObject([
    {
      collection: "episodes",
      rowId: "e",
      fields: { userMessage: "Why?", aiResponse: "Because." },
      gone: "unsent",
    },
  ]);
  expect((await harness.rows(user, "episodes")).filter(({ _deleted }) => !_deleted)).toEqual([]);
});

test("of a row deleted elsewhere, only locally changed text is kept", async () => {
  await laptop.edit("facts", "f", () => ({ value: "Grace" }));
  await deleteOnServer("facts", "f");
  await startSync();
  await waitUntilDeleted("facts", "f");
  expect([...losers.values()]).toMatchObject([{ rowId: "f", fields: { value: "Grace" }, gone: "changed" }]);
  expect([...losers.values()][0]!.fields).not.toHaveProperty("key");
});

test("a row without local text changes leaves no conflict loser", async () => {
  await laptop.edit("sessions", "s", () => ({ mode: "authoritative" })); // not a text field
  await deleteOnServer("sessions", "s");
  await startSync();
  await waitUntilDeleted("sessions", "s");
  expect(losers.size).toBe(0);
});

test("a row deleted on this device leaves no conflict loser", async () => {
  await laptop.insert("episodes", newTurn());
  await deleteOnServer("sessions", "s");
  await laptop.remove("episodes", "e");
  await laptop.edit("facts", "f", () => ({ value: "Grace" }));
  await deleteOnServer("facts", "f");
  await laptop.remove("facts", "f");
  await startSync();
  await waitUntilDeleted("sessions", "s");
  expect(losers.size).toBe(0);
});

test("a row deleted during its push leaves no conflict loser", async () => {
  await laptop.insert("episodes", newTurn());
  await deleteOnServer("sessions", "s");
  const handler = laptop.collection("episodes").conflictHandler;
  const ours = await laptop.row("episodes", "e");
  await laptop.remove("episodes", "e");
  const realMasterState = { ...ours, userMessage: "", aiResponse: "", _deleted: true };
  await handler.resolve({ newDocumentState: { ...ours, _deleted: false }, realMasterState }, "test");
  expect(losers.size).toBe(0);
});

test("a row removed by forget everything leaves no conflict loser", async () => {
  await laptop.edit("facts", "f", () => ({ value: "Grace" }));
  const body = JSON.stringify({ confirm: "forget everything" });
  const receipt = await harness.request<{ at: string }>(user, "/v1/forget", { method: "POST", body });
  account = { forgottenAt: receipt.at };
  await startSync();
  await waitUntilDeleted("facts", "f");
  expect(losers.size).toBe(0);
});

test("a row synced before a restore is not kept as unsent", async () => {
  const ours = { ...newTurn(), _deleted: false };
  await laptop.insert("episodes", newTurn());
  const realMasterState = { ...ours, userMessage: "", aiResponse: "", _deleted: true };
  const resolve = () =>
    laptop
      .collection("episodes")
      .conflictHandler.resolve({ newDocumentState: ours, realMasterState }, "test");
  account = { syncedAt: "2999-01-01T00:00:00.000Z" };
  await resolve();
  expect(losers.size).toBe(0);
  account = { syncedAt: "2026-01-01T00:00:00.000Z" };
  await resolve();
  expect(losers.size).toBe(1);
});
