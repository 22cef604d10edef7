/** The sync status: a row written on this device counts as waiting until the server has confirmed it. */

import { getRxStorageMemory } from "rxdb/plugins/storage-memory";
import type { RxStorage } from "rxdb/plugins/core";
import type { DeviceDatabase, DeviceAccount } from "../../../../web/src/storage/deviceDatabase.ts";
import { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { TabCoordinator, type SyncSummary } from "../../../../web/src/backend/sync/tabCoordinator.ts";
import { collectionOf, insert, openRows, row } from "../../device.ts";
import { answering } from "../../uploads.ts";
import { soon } from "../../../soon.ts";

/** Start a server without rows that answers pushes only after `release` is called. */
async function startServer() {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const base = await answering((request, response) => {
    if (request.url!.includes("/pull")) {
      response.end(JSON.stringify({ documents: [], checkpoint: { lwt: 0, id: "epoch" } }));
    } else if (request.url!.includes("/push")) void released.then(() => response.end("[]"));
  });
  return { base, release };
}

/** Return a storage that opens the replication state of the first collection only after `open` is called. */
function lateStorage(): { storage: RxStorage<any, any>; open: () => void } {
  const storage = getRxStorageMemory();
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  let first: string | undefined;
  const createStorageInstance: typeof storage.createStorageInstance = async (params) => {
    if (params.collectionName.startsWith("rx-replication-meta")) {
      first ??= params.collectionName;
      if (params.collectionName === first) await opened;
    }
    return storage.createStorageInstance(params);
  };
  return { storage: { ...storage, createStorageInstance }, open };
}

/** Create a sync that is not started yet, and record all its summaries. */
async function createSync(base: string, storage?: RxStorage<any, any>) {
  const locks = { request: (_: string, __: object, work: () => Promise<void>) => work() };
  vi.stubGlobal("navigator", { locks });
  onTestFinished(() => void vi.unstubAllGlobals());
  const records = await openRows(storage);
  const account = { userId: crypto.randomUUID(), epoch: "epoch" } as DeviceAccount;
  const device = {
    accounts: { get: async () => account, update: async () => 0 },
  } as unknown as DeviceDatabase;
  const context = new AccountContext(account, records, device, { base });
  const sync = new TabCoordinator(context);
  onTestFinished(() => sync.stop());
  const summaries: SyncSummary[] = [];
  sync.summary$.subscribe((summary) => summaries.push(summary));
  return { context, records, device, sync, summaries, isLive: () => sync.summary$.value.kind === "live" };
}

test("a row written on this device counts as waiting until confirmed", async () => {
  const { base, release } = await startServer();
  const { records, sync, summaries, isLive } = await createSync(base);
  onTestFinished(release); // a pending push would keep the database open
  sync.start();
  await soon(() => expect(isLive() && sync.summary$.value.syncedAt !== null).toBe(true));
  await insert(records, "facts", { id: "f" });
  expect(sync.summary$.value).toMatchObject({ kind: "live", waiting: 1, waitingOf: { facts: 1 } });
  const written = summaries.length;
  await new Promise((resolve) => setTimeout(resolve, 1_500)); // the sync counts waiting rows during this time
  expect(summaries.slice(written).map(({ waiting }) => waiting)).not.toContain(0);
  release();
  await soon(() => expect(sync.summary$.value).toMatchObject({ waiting: 0, waitingOf: {} }));
});

test("rows received from the server do not count as waiting", async () => {
  const { base } = await startServer();
  const { records, sync } = await createSync(base);
  await collectionOf(records, "facts").storageInstance.bulkWrite(
    [
      {
        document: {
          ...row("facts", { id: "f" }),
          _deleted: false,
          _attachments: {},
          _meta: { lwt: 1 },
          _rev: "1-a",
        } as any,
      },
    ],
    "replication-downstream-1",
  );
  expect(sync.summary$.value.waiting).toBe(0);
});

test("sync is live only after the waiting rows of all collections are counted", async () => {
  const { base, release } = await startServer();
  const { storage, open } = lateStorage();
  const { records, sync, summaries, isLive } = await createSync(base, storage);
  onTestFinished(() => (open(), release()));
  const [first] = Object.keys(records.collections); // the collection whose replication state opens late
  await insert(records, first!, { id: "of an earlier visit" });
  sync.summary$.next({ ...sync.summary$.value, waiting: 0, waitingOf: {} }); // as in a new page
  sync.start();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(summaries.some(({ kind, waiting }) => kind === "live" && waiting === 0)).toBe(false);
  open();
  await soon(() => expect(isLive()).toBe(true));
  expect(sync.summary$.value.waitingOf).toEqual({ [first!]: 1 });
  release();
  await soon(() => expect(sync.summary$.value).toMatchObject({ kind: "live", waiting: 0 }));
});

test("a full disk does not prevent live status", async () => {
  const { base, release } = await startServer();
  onTestFinished(release);
  const { device, sync, isLive } = await createSync(base);
  vi.spyOn(console, "error").mockImplementation(() => {});
  device.accounts.update = (async (_: string, change: object) => {
    if ("syncedAt" in change) throw new DOMException("There is no room.", "QuotaExceededError");
    return 0;
  }) as unknown as DeviceDatabase["accounts"]["update"];
  sync.start();
  await soon(() => expect(isLive()).toBe(true));
});

test("waitUntilPushed ends with the last push in every tab", async () => {
  const { base, release } = await startServer();
  onTestFinished(release);
  const { context, records, sync, isLive } = await createSync(base);
  const otherTab = new TabCoordinator(context);
  onTestFinished(() => otherTab.stop());
  sync.start();
  await soon(() => expect(isLive()).toBe(true));
  await insert(records, "facts", { id: "f" });
  const waits = [sync, otherTab].map((tab) => tab.waitUntilPushed(10_000));
  const first = await Promise.race([...waits, new Promise((resolve) => setTimeout(resolve, 1_000, "late"))]);
  expect(first).toBe("late");
  release();
  expect(await Promise.all(waits)).toEqual([true, true]);
});

test("frequent summaries do not starve waitUntilPushed", async () => {
  const { base, release } = await startServer();
  release();
  const { sync, isLive } = await createSync(base);
  sync.start();
  await soon(() => expect(isLive()).toBe(true));
  const countPending = sync.replicator!.countPending.bind(sync.replicator);
  vi.spyOn(sync.replicator!, "countPending").mockImplementation(async (max) => {
    await new Promise((resolve) => setTimeout(resolve, 200));
    return countPending(max);
  });
  const summaries = setInterval(() => sync.summary$.next({ ...sync.summary$.value }), 50);
  onTestFinished(() => clearInterval(summaries));
  expect(await sync.waitUntilPushed(3_000)).toBe(true);
});

test("waitUntilPushed times out when the clock goes back", async () => {
  const { sync } = await createSync("http://127.0.0.1:9");
  const noon = Date.now();
  const clock = vi
    .spyOn(Date, "now")
    .mockReturnValueOnce(noon)
    .mockReturnValue(noon - 3_600_000);
  onTestFinished(() => clock.mockRestore());
  const late = new Promise((resolve) => setTimeout(resolve, 2_000, "late"));
  expect(await Promise.race([sync.waitUntilPushed(100), late])).toBe(false);
});
