/** Networks that respond instead of the server, misleading rows, and full disks. */

import { REPLICATION_STATE_BY_COLLECTION } from "rxdb/plugins/replication";
import { filter, firstValueFrom } from "rxjs";
import { Replicator } from "../../web/src/backend/sync/replication.ts";
import { kindOf } from "../../web/src/backend/sync/tabCoordinator.ts";
import { Device, memory, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { FaultProxy } from "./faultProxy.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

let proxy: FaultProxy;
let device: Device;

beforeEach(async () => {
  proxy = await FaultProxy.open(harness);
  device = await Device.make(harness, user, ["sessions", "facts"], true);
});

afterEach(async () => {
  await device.close();
  proxy.close();
});

const kind = () => kindOf(device.sync!.state$.value);
const isOnServer = async () => (await harness.rows(user, "sessions")).length === 1;

async function goLive(): Promise<void> {
  await device.startAppSync(memory(), undefined, proxy.url);
  await eventually("the status is live", () => kind() === "live" && proxy.count("/stream") === 1);
}

/** Create a sync that retries failures only after a minute or on syncNow. */
function createPatientSync(known = memory()): Replicator {
  const server = { base: proxy.url, headers: { authorization: `Bearer ${user.token}` } };
  const { collections } = device.db;
  return new Replicator({ server, collections, store: known, retryMs: 60_000, waitForLeadership: false });
}

test("a row whose text names a quota error does not report a full disk", async () => {
  await goLive();
  proxy.reject = (path) => (path.includes("/push") ? { status: 502 } : undefined);
  await device.insert("sessions", session("s", { title: "What is a QuotaExceededError?" }));
  await eventually("it failed twice", () => proxy.count("/push") > 1);
  expect(kind()).toBe("offline");
  proxy.reject = () => undefined;
  await eventually("the row is stored", isOnServer);
});

test.each([
  ["a page instead of the stream", { type: "text/html", body: "<p>Sign in</p>" }],
  ["an empty stream", { type: "text/event-stream", body: "" }],
])("%s does not trigger a waiting retry", async (_, forged) => {
  proxy.forge = (path) => (path.includes("/stream") ? forged : undefined);
  proxy.reject = (path) => (path.includes("/push") ? { status: 502 } : undefined);
  await device.insert("sessions", session("s"));
  device.sync = createPatientSync();
  let connected = 0;
  device.sync.connected$.subscribe(() => connected++);
  await device.sync.start();
  await eventually("the stream is opened again", () => proxy.count("/stream") > 2);
  expect(connected).toBe(0);
  expect(proxy.count("/push")).toBe(1);
});

test("a stream closed at once reconnects with backoff", async () => {
  const cut = { type: "text/event-stream", body: ": hello\n\n" };
  proxy.forge = (path) => (path.includes("/stream") ? cut : undefined);
  device.sync = createPatientSync();
  await device.sync.start();
  await eventually("it is opened again", () => proxy.count("/stream") > 3);
  const [, second, third, fourth] = proxy.requests.filter(({ path }) => path.includes("/stream"));
  expect(third!.at - second!.at).toBeGreaterThan(900);
  expect(fourth!.at - third!.at).toBeGreaterThan(1_900);
});

test("a push answered with foreign JSON stays pending until its retry", async () => {
  device.sync = createPatientSync();
  const connected = firstValueFrom(device.sync.connected$);
  await device.sync.start();
  await connected;
  proxy.forge = (path) => (path.includes("/push") ? { type: "application/json", body: "{}" } : undefined);
  const failed = firstValueFrom(device.sync.state$.pipe(filter((state) => kindOf(state) === "offline")));
  await device.insert("sessions", session("s"));
  await failed;
  expect(proxy.count("/push")).toBe(1);
  proxy.forge = () => undefined;
  device.sync.syncNow();
  await eventually("the row is stored", isOnServer);
  expect(proxy.count("/push")).toBe(2);
});

test.each(["null", "{}", '{"documents":[]}'])("a pull rejects the response %s", async (body) => {
  proxy.forge = (path) => (path.includes("/pull") ? { type: "application/json", body } : undefined);
  proxy.reject = (path) => (path.includes("/stream") ? { status: 502 } : undefined);
  device.sync = createPatientSync();
  const started = device.sync.start(); // start() requests the epoch first
  await eventually("the status is offline", () => kind() === "offline");
  proxy.forge = () => undefined;
  device.sync.syncNow();
  await started;
  await eventually("the status is live", () => kind() === "live");
  proxy.forge = (path) => (path.includes("/pull") ? { type: "application/json", body } : undefined);
  device.sync.syncNow();
  await eventually("the status is offline again", () => kind() === "offline");
});

test("a server that becomes unreachable after a restore gets few requests", async () => {
  device.sync = createPatientSync();
  const connected = firstValueFrom(device.sync.connected$);
  await device.sync.start();
  await connected;
  await device.insert("sessions", session("sent"));
  await eventually("the row is stored", isOnServer);
  let isUnreachable = false;
  proxy.reject = (path) => {
    if (!path.includes("/push")) return isUnreachable ? { status: 502 } : undefined;
    isUnreachable = true;
    return { status: 409, code: "EPOCH" };
  };
  const waits = vi.spyOn(device.collection("sessions"), "promiseWait"); // RxDB calls it between two attempts
  onTestFinished(() => waits.mockRestore());
  await device.insert("sessions", session("waits"));
  await eventually("the epoch was requested", () => kind() === "offline");
  const start = performance.now();
  await eventually("half a second has passed", () => performance.now() - start > 500);
  expect(waits.mock.calls.length).toBeLessThan(3);
  isUnreachable = false;
  proxy.reject = () => undefined;
  device.sync.syncNow();
  await eventually("the row is stored", async () => (await harness.rows(user, "sessions")).length === 2);
});

test("sync continues after a full disk has space again", async () => {
  const known = memory();
  const save = vi.spyOn(known, "save");
  const full = new DOMException("The disk is full.", "QuotaExceededError");
  save.mockRejectedValueOnce(full);
  device.sync = createPatientSync(known);
  const started = device.sync.start().catch(console.error);
  await eventually("the status is full", () => kind() === "full");
  device.sync.syncNow();
  await started;
  await eventually("the status is live", () => kind() === "live");
  proxy.reject = (path) => (path.includes("/push") ? { status: 409, code: "EPOCH" } : undefined);
  save.mockRejectedValueOnce(full);
  await device.insert("sessions", session("s"));
  await eventually("the status is full again", () => kind() === "full");
  proxy.reject = () => undefined;
  device.sync.syncNow();
  await eventually("the row is stored", isOnServer);
});

/** Make the storage reject reads after it is closed, as the browser's does. RxDB's memory storage allows them. */
function rejectReadsAfterClose(): void {
  const replication = REPLICATION_STATE_BY_COLLECTION.get(device.collection("sessions"))![0]!;
  const meta = replication.metaInstance!;
  const findDocuments = meta.findDocumentsById.bind(meta);
  let isClosed = false;
  const close = meta.close.bind(meta);
  meta.close = () => ((isClosed = true), close());
  meta.findDocumentsById = async (...query) => {
    if (isClosed) throw new Error("The storage is closed.");
    return findDocuments(...query);
  };
}

test("waiting rows are counted on a full disk and after the sync stops", async () => {
  await goLive();
  await device.sync!.awaitInSync();
  rejectReadsAfterClose();
  const storage = device.collection("sessions").storageInstance;
  const write = vi.spyOn(storage, "bulkWrite");
  write.mockRejectedValueOnce(new DOMException("The disk is full.", "QuotaExceededError"));
  const row = { ...session("theirs"), _deleted: false };
  const body = JSON.stringify([{ newDocumentState: row }]);
  await harness.request(user, "/v1/sync/sessions/1/push", { method: "POST", body });
  await eventually("the status is full", () => kind() === "full");
  await device.insert("sessions", session("ours"));
  expect(await device.sync!.countPending(10)).toEqual({ sessions: 1 });
  await device.sync!.stop();
  expect(await device.sync!.countPending(10)).toEqual({ sessions: 1 });
});
