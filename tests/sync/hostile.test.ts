/** Networks that answer in the server's place, and rows and disks that look like something else. */

import { REPLICATION_STATE_BY_COLLECTION } from "rxdb/plugins/replication";
import { filter, firstValueFrom } from "rxjs";
import { Replicator } from "../../web/src/backend/sync/replication.ts";
import { kindOf } from "../../web/src/backend/sync/syncCoordinator.ts";
import { Device, memory, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { Gate } from "./gate.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

let gate: Gate;
let device: Device;

beforeEach(async () => {
  gate = await Gate.open(harness);
  device = await Device.make(harness, user, ["sessions", "facts"], true);
});

afterEach(async () => {
  await device.close();
  gate.close();
});

const kind = () => kindOf(device.sync!.state$.value);
const isOnServer = async () => (await harness.rows(user, "sessions")).length === 1;

async function live(): Promise<void> {
  await device.own(memory(), undefined, gate.url);
  await eventually("it is live", () => kind() === "live" && gate.times("/stream") === 1);
}

/** What failed waits until somebody wakes it. */
function patient(known = memory()): Replicator {
  const server = { base: gate.url, headers: { authorization: `Bearer ${user.token}` } };
  const { collections } = device.db;
  return new Replicator({ server, collections, store: known, retryMs: 60_000, waitForLeadership: false });
}

test("a row that speaks of a full disk is no full disk, when its push fails", async () => {
  await live();
  gate.refuses = (path) => (path.includes("/push") ? { status: 502 } : undefined);
  await device.insert("sessions", session("s", { title: "What is a QuotaExceededError?" }));
  await eventually("it failed twice", () => gate.times("/push") > 1);
  expect(kind()).toBe("offline");
  gate.refuses = () => undefined;
  await eventually("it is there", isOnServer);
});

test.each([
  ["a page in place of the stream", { type: "text/html", body: "<p>Sign in</p>" }],
  ["a stream of which nothing comes", { type: "text/event-stream", body: "" }],
])("%s wakes nothing that waits", async (_, forged) => {
  gate.forges = (path) => (path.includes("/stream") ? forged : undefined);
  gate.refuses = (path) => (path.includes("/push") ? { status: 502 } : undefined);
  await device.insert("sessions", session("s"));
  device.sync = patient();
  let connected = 0;
  device.sync.connected$.subscribe(() => connected++);
  await device.sync.start();
  await eventually("it is tried again", () => gate.times("/stream") > 2);
  expect(connected).toBe(0);
  expect(gate.times("/push")).toBe(1);
});

test("a stream that is cut as soon as it stands is opened ever more seldom", async () => {
  const cut = { type: "text/event-stream", body: ": hello\n\n" };
  gate.forges = (path) => (path.includes("/stream") ? cut : undefined);
  device.sync = patient();
  await device.sync.start();
  await eventually("it is opened again", () => gate.times("/stream") > 3);
  const [, second, third, fourth] = gate.asked.filter(({ path }) => path.includes("/stream"));
  expect(third!.at - second!.at).toBeGreaterThan(900);
  expect(fourth!.at - third!.at).toBeGreaterThan(1_900);
});

test("JSON that is not the server's is no answer to a push: it waits for its next try", async () => {
  device.sync = patient();
  const connected = firstValueFrom(device.sync.connected$);
  await device.sync.start();
  await connected;
  gate.forges = (path) => (path.includes("/push") ? { type: "application/json", body: "{}" } : undefined);
  const failed = firstValueFrom(device.sync.state$.pipe(filter((state) => kindOf(state) === "offline")));
  await device.insert("sessions", session("s"));
  await failed;
  expect(gate.times("/push")).toBe(1);
  gate.forges = () => undefined;
  device.sync.syncNow();
  await eventually("it is there", isOnServer);
  expect(gate.times("/push")).toBe(2);
});

test.each(["null", "{}", '{"documents":[]}'])("%s is no answer to a pull", async (body) => {
  gate.forges = (path) => (path.includes("/pull") ? { type: "application/json", body } : undefined);
  gate.refuses = (path) => (path.includes("/stream") ? { status: 502 } : undefined);
  device.sync = patient();
  const started = device.sync.start(); // asks for the epoch first
  await eventually("it failed", () => kind() === "offline");
  gate.forges = () => undefined;
  device.sync.syncNow();
  await started;
  await eventually("it is live", () => kind() === "live");
  gate.forges = (path) => (path.includes("/pull") ? { type: "application/json", body } : undefined);
  device.sync.syncNow();
  await eventually("it failed again", () => kind() === "offline");
});

test("a server that is restored and gone at once is left alone between the tries", async () => {
  device.sync = patient();
  const connected = firstValueFrom(device.sync.connected$);
  await device.sync.start();
  await connected;
  await device.insert("sessions", session("sent"));
  await eventually("it is there", isOnServer);
  let isGone = false;
  gate.refuses = (path) => {
    if (!path.includes("/push")) return isGone ? { status: 502 } : undefined;
    isGone = true;
    return { status: 409, code: "EPOCH" };
  };
  const waits = vi.spyOn(device.of("sessions"), "promiseWait"); // RxDB's, between two tries
  onTestFinished(() => waits.mockRestore());
  await device.insert("sessions", session("waits"));
  await eventually("the epoch was asked for", () => kind() === "offline");
  const asked = performance.now();
  await eventually("a while has passed", () => performance.now() - asked > 500);
  expect(waits.mock.calls.length).toBeLessThan(3);
  isGone = false;
  gate.refuses = () => undefined;
  device.sync.syncNow();
  await eventually("it is there", async () => (await harness.rows(user, "sessions")).length === 2);
});

test("no room for what is known of the server, at first and when it was restored: it goes on once there is", async () => {
  const known = memory();
  const save = vi.spyOn(known, "save");
  const full = new DOMException("The disk is full.", "QuotaExceededError");
  save.mockRejectedValueOnce(full);
  device.sync = patient(known);
  const started = device.sync.start().catch(console.error);
  await eventually("it is full", () => kind() === "full");
  device.sync.syncNow();
  await started;
  await eventually("it is live", () => kind() === "live");
  gate.refuses = (path) => (path.includes("/push") ? { status: 409, code: "EPOCH" } : undefined);
  save.mockRejectedValueOnce(full);
  await device.insert("sessions", session("s"));
  await eventually("it is full again", () => kind() === "full");
  gate.refuses = () => undefined;
  device.sync.syncNow();
  await eventually("it is there", isOnServer);
});

/** As the browser's storage does: what was closed is not asked. RxDB's in memory answers all the same. */
function refuseWhenClosed(): void {
  const replication = REPLICATION_STATE_BY_COLLECTION.get(device.of("sessions"))![0]!;
  const meta = replication.metaInstance!;
  const find = meta.findDocumentsById.bind(meta);
  let isClosed = false;
  const close = meta.close.bind(meta);
  meta.close = () => ((isClosed = true), close());
  meta.findDocumentsById = async (...asked) => {
    if (isClosed) throw new Error("It is closed.");
    return find(...asked);
  };
}

test("how much waits is known on a full device, and of a sync that was stopped", async () => {
  await live();
  await device.sync!.awaitInSync();
  refuseWhenClosed();
  const storage = device.of("sessions").storageInstance;
  const write = vi.spyOn(storage, "bulkWrite");
  write.mockRejectedValueOnce(new DOMException("The disk is full.", "QuotaExceededError"));
  const row = { ...session("theirs"), _deleted: false };
  const body = JSON.stringify([{ newDocumentState: row }]);
  await harness.call(user, "/v1/sync/sessions/0/push", { method: "POST", body });
  await eventually("it is full", () => kind() === "full");
  await device.insert("sessions", session("ours"));
  expect(await device.sync!.countPending(10)).toEqual({ sessions: 1 });
  await device.sync!.stop();
  expect(await device.sync!.countPending(10)).toEqual({ sessions: 1 });
});
