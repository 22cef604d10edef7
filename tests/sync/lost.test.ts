/** What a person wrote without a network, and another device deleted meanwhile: it stays deleted, its words are kept. */

import type {
  DeviceDatabase as Known,
  DeviceAccount,
  ConflictLoser,
} from "../../web/src/storage/deviceDatabase.ts";
import type { AccountContext } from "../../web/src/backend/account/accountContext.ts";
import { keepConflictLosers, watchReplacedRows } from "../../web/src/backend/sync/conflictLosers.ts";
import type { Collections } from "../../web/src/core/schema/rows.ts";
import { Device, episode, fact, memory, now, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

/** What the device keeps beside its rows. */
let kept: Map<string, ConflictLoser>;
let account: Partial<DeviceAccount>;
let laptop: Device;
const NAMES = ["sessions", "episodes", "facts"] as const;

beforeEach(async () => {
  [kept, account, store] = [new Map(), {}, memory()];
  const known = {
    accounts: { get: async () => account },
    lost: { put: async (lost: ConflictLoser) => void kept.set(lost.id, lost) },
    deleteConflictLosers: async (_: string, collection: string, ids: string[], here: boolean) => {
      for (const { id, collection: of, rowId, gone } of kept.values()) {
        if (of === collection && ids.includes(rowId) && (here || !gone)) kept.delete(id);
      }
    },
  } as unknown as Known;
  const { userId } = user;
  const of = (name: string) =>
    keepConflictLosers(known, userId, name as keyof Collections, () => laptop.db.collections[name]!);
  laptop = await Device.make(harness, user, [...NAMES], of);
  watchReplacedRows({ device: known, account: { userId }, database: laptop.db } as unknown as AccountContext);
  await laptop.insert("sessions", session("s"));
  await laptop.insert("facts", fact("f"));
  await goOnline();
  await eventually("it is up", async () => (await harness.rows(user, "facts")).length === 1);
  await laptop.sync!.stop();
});
afterEach(() => laptop.close());

let store = memory();
async function goOnline(): Promise<void> {
  await laptop.own(store);
}

/** By another device. */
async function deleteThere(collection: string, id: string): Promise<void> {
  const row = (await harness.rows(user, collection)).find((found) => found["id"] === id);
  const body = JSON.stringify([{ newDocumentState: { ...row, _deleted: true } }]);
  expect(await harness.call(user, `/v1/sync/${collection}/0/push`, { method: "POST", body })).toEqual([]);
}

async function goneHere(collection: string, id: string): Promise<void> {
  await eventually("it is gone", async () => (await laptop.row(collection, id)) === undefined);
  await laptop.sync!.awaitInSync();
  await new Promise((resolve) => setTimeout(resolve, 200)); // who listens has heard of it
}

const asked = (more: object = {}) =>
  episode("e", "s", {
    createdAt: now(),
    updatedAt: now(),
    userMessage: "Why?",
    aiResponse: "Because.",
    ...more,
  });

test("a question asked in a conversation that was deleted elsewhere stays deleted, and is kept with its answer", async () => {
  await laptop.insert("episodes", asked());
  await deleteThere("sessions", "s");
  await goOnline();
  await goneHere("episodes", "e");
  expect([...kept.values()]).toMatchObject([
    {
      collection: "episodes",
      rowId: "e",
      fields: { userMessage: "Why?", aiResponse: "Because." },
      gone: "unsent",
    },
  ]);
  expect((await harness.rows(user, "episodes")).filter(({ _deleted }) => !_deleted)).toEqual([]);
});

test("of a row that was deleted elsewhere the text that was changed here is kept, and no other", async () => {
  await laptop.edit("facts", "f", () => ({ value: "Grace" }));
  await deleteThere("facts", "f");
  await goOnline();
  await goneHere("facts", "f");
  expect([...kept.values()]).toMatchObject([{ rowId: "f", fields: { value: "Grace" }, gone: "changed" }]);
  expect([...kept.values()][0]!.fields).not.toHaveProperty("key");
});

test("of a row that the server had, nothing is kept", async () => {
  await laptop.edit("sessions", "s", () => ({ mode: "authoritative" })); // these are no words
  await deleteThere("sessions", "s");
  await goOnline();
  await goneHere("sessions", "s");
  expect(kept.size).toBe(0);
});

test("of a row that this device deleted itself, nothing is kept", async () => {
  await laptop.insert("episodes", asked());
  await deleteThere("sessions", "s");
  await laptop.remove("episodes", "e");
  await laptop.edit("facts", "f", () => ({ value: "Grace" }));
  await deleteThere("facts", "f");
  await laptop.remove("facts", "f");
  await goOnline();
  await goneHere("sessions", "s");
  expect(kept.size).toBe(0);
});

test("of what is deleted here while it is on its way, nothing is kept", async () => {
  await laptop.insert("episodes", asked());
  await deleteThere("sessions", "s");
  const handler = laptop.of("episodes").conflictHandler;
  const ours = await laptop.row("episodes", "e");
  await laptop.remove("episodes", "e");
  const realMasterState = { ...ours, userMessage: "", aiResponse: "", _deleted: true };
  await handler.resolve({ newDocumentState: { ...ours, _deleted: false }, realMasterState }, "test");
  expect(kept.size).toBe(0);
});

test("of what was forgotten with everything, nothing is kept", async () => {
  await laptop.edit("facts", "f", () => ({ value: "Grace" }));
  const body = JSON.stringify({ confirm: "forget everything" });
  const receipt = await harness.call<{ at: string }>(user, "/v1/forget", { method: "POST", body });
  account = { forgottenAt: receipt.at };
  await goOnline();
  await goneHere("facts", "f");
  expect(kept.size).toBe(0);
});

test("what the server had before it was restored is not taken for new", async () => {
  const ours = { ...asked(), _deleted: false };
  await laptop.insert("episodes", asked());
  const realMasterState = { ...ours, userMessage: "", aiResponse: "", _deleted: true };
  const resolve = () =>
    laptop.of("episodes").conflictHandler.resolve({ newDocumentState: ours, realMasterState }, "test");
  account = { syncedAt: "2999-01-01T00:00:00.000Z" };
  await resolve();
  expect(kept.size).toBe(0);
  account = { syncedAt: "2026-01-01T00:00:00.000Z" };
  await resolve();
  expect(kept.size).toBe(1);
});
