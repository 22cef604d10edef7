/** When the app asks its pages to reload, so that deleted and replaced text is erased from the browser's files. */

import { editRow } from "../../../../web/src/storage/editRow.ts";
import type {
  DeviceDatabase,
  DeviceAccount,
  DeletedText,
} from "../../../../web/src/storage/deviceDatabase.ts";
import { REQUEST_ERASURE, REQUEST_ERASURE_NOW } from "../../../../web/src/lib/locks.ts";
import { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { DeletedTextErasure, TEXT_FIELDS } from "../../../../web/src/backend/account/deletedTextErasure.ts";
import type { TabCoordinator } from "../../../../web/src/backend/sync/tabCoordinator.ts";
import { schemas } from "../../../../web/src/storage/schemas.ts";
import { collectionOf, insert, openRows } from "../../device.ts";
import { soon } from "../../../soon.ts";

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];

/** Start the erasure of an account with real rows, a fake clock and settable states of sync and disk. */
async function startErasure(leftover?: DeletedText) {
  const row = { userId: "u", ...(leftover && { leftover }) } as DeviceAccount;
  const accounts = {
    get: async () => structuredClone(row),
    where: () => ({ modify: async (change: (row: DeviceAccount) => void) => change(row) }),
  };
  const records = await openRows();
  const device = { accounts } as unknown as DeviceDatabase;
  const context = new AccountContext(row, records, device, { base: "" });
  const summary = { kind: "live", waiting: 0 };
  const sync = {
    replicator: { metaStorageOf: (name: string) => `meta-of-${name}` },
    summary$: { value: summary },
  } as unknown as TabCoordinator;
  const disk = { usage: 10, quota: 21 };
  const requests = vi.spyOn(BroadcastChannel.prototype, "postMessage");
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  // Node.js may lack navigator.locks and navigator.storage.
  const navigator = { locks: { query: async () => ({ held: [] }) }, storage: { estimate: async () => disk } };
  vi.stubGlobal("navigator", navigator);
  const erasure = new DeletedTextErasure(context, sync);
  onTestFinished(() => {
    erasure.stop();
    vi.useRealTimers();
    vi.unstubAllGlobals();
    requests.mockRestore();
  });
  /** Return how often pages have been asked to reload, after waiting for `ms`. */
  const requestsAfter = async (ms: number, kind: string = REQUEST_ERASURE) => {
    await vi.advanceTimersByTimeAsync(ms);
    return requests.mock.calls.filter(([message]) => message === kind).length;
  };
  return { row, records, summary, disk, requestsAfter };
}

const oneOf = async (records: Awaited<ReturnType<typeof openRows>>, name: string, id: string) =>
  (await collectionOf(records, name).findOne(id).exec())!;

test("while an erasure keeps failing, pages are asked less often to reload", async () => {
  const { requestsAfter } = await startErasure({ since: "", deletes: 0, storages: ["*"], atOnce: true });
  expect(await requestsAfter(2 * MINUTE_MS, REQUEST_ERASURE_NOW)).toBeGreaterThanOrEqual(1);
  const later = await requestsAfter(12 * HOUR_MS, REQUEST_ERASURE_NOW);
  expect(later).toBeGreaterThanOrEqual(8);
  expect(later).toBeLessThanOrEqual(12);
});

test("erasure is due after 200 deletes and edits", async () => {
  const { row, records, requestsAfter } = await startErasure();
  const ids = [...Array(100).keys()].map(String);
  await insert(records, "memories", ...ids.map((id) => ({ id, text: `The rent is ${id}.` })));
  expect(row.leftover).toBeUndefined(); // new rows replace nothing
  const edit = async (id: string, text: string) =>
    editRow<any>(await oneOf(records, "memories", id), (row) => ({ ...row, text }));
  for (const id of ids) await edit(id, "It went up.");
  for (const id of ids.slice(1)) await (await oneOf(records, "memories", id)).remove();
  await soon(() => expect(row.leftover?.deletes).toBe(199));
  expect(await requestsAfter(2 * MINUTE_MS)).toBe(0);
  await (await oneOf(records, "memories", "0")).remove();
  await soon(() => expect(row.leftover?.deletes).toBe(200));
  expect(row.leftover?.storages).toEqual(["memories", "meta-of-memories"]);
  expect(await requestsAfter(MINUTE_MS)).toBe(1);
});

test("erasure is due a day after the first delete", async () => {
  const { row, records, requestsAfter } = await startErasure();
  await insert(records, "facts", { id: "f" });
  await (await oneOf(records, "facts", "f")).remove();
  await soon(() => expect(row.leftover?.deletes).toBe(1));
  expect(await requestsAfter(24 * HOUR_MS - MINUTE_MS)).toBe(0);
  expect(await requestsAfter(2 * MINUTE_MS)).toBe(1);
});

test("pages are asked to reload only when the sync is idle", async () => {
  const { summary, requestsAfter } = await startErasure({ since: "", deletes: 200, storages: ["facts"] });
  summary.waiting = 1;
  expect(await requestsAfter(2 * MINUTE_MS)).toBe(0);
  Object.assign(summary, { kind: "offline", waiting: 0 });
  expect(await requestsAfter(2 * MINUTE_MS)).toBe(0);
  summary.kind = "live";
  expect(await requestsAfter(MINUTE_MS)).toBe(1);
});

test("pages are asked to reload only if storage has room for a copy of all rows", async () => {
  const { disk, requestsAfter } = await startErasure({ since: "", deletes: 200, storages: ["facts"] });
  disk.quota = 20;
  expect(await requestsAfter(2 * MINUTE_MS)).toBe(0);
  disk.quota = 21;
  expect(await requestsAfter(MINUTE_MS)).toBe(1);
});

test("edits of all text fields count", () => {
  const ofPrograms = ["embedding", "externalId", "mimeType", "model"];
  const fields = Object.values(schemas).flatMap(({ properties }) => Object.entries<any>(properties));
  const isText = ([, { maxLength = 0 }]: [string, any]) => maxLength >= 255; // ids, times and hashes are shorter
  const texts = new Set(fields.filter(isText).map(([name]) => name));
  const expected = [...texts, "chunks", "notices", "tags"].filter((name) => !ofPrograms.includes(name));
  expect([...TEXT_FIELDS].sort()).toEqual(expected.sort());
});

test("only edits that remove text count", async () => {
  const { row, records } = await startErasure();
  await insert(records, "episodes", { id: "e", aiResponse: "The rent" });
  await insert(records, "documents", { id: "d" });
  await insert(records, "vectorEmbeddings", { id: "d_0", documentId: "d", block: 0 });
  const edit = async (name: string, id: string, change: object) =>
    editRow<any>(await oneOf(records, name, id), (row) => ({ ...row, ...change }));
  await edit("episodes", "e", { aiResponse: "The rent is due in May.", status: "stopped" });
  await edit("documents", "d", {
    activeSessions: ["s"],
    accessCount: 1,
    updatedAt: "2026-01-02T00:00:00.000Z",
  });
  await edit("vectorEmbeddings", "d_0", { model: "m", dims: 1, embedding: "AAAAAA==" });
  const chunks = [{ index: 0, start: 0, text: "another text", tokens: 2 }];
  await edit("vectorEmbeddings", "d_0", { chunks });
  await soon(() => expect(row.leftover?.deletes).toBe(1));
  expect(row.leftover?.storages).toEqual(["vectorEmbeddings", "meta-of-vectorEmbeddings"]);
  await edit("episodes", "e", { aiResponse: "" });
  await soon(() => expect(row.leftover?.deletes).toBe(2));
});
