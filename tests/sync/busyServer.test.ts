/** An overloaded server sends Retry-After. The app waits that long and shows that the server is busy. */

import { filter, firstValueFrom } from "rxjs";
import { kindOf } from "../../web/src/backend/sync/tabCoordinator.ts";
import { Replicator, type ServerKnowledgeStore } from "../../web/src/backend/sync/replication.ts";
import { block, Device, document, fact, memory, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { FaultProxy, type Rejection } from "./faultProxy.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

let proxy: FaultProxy;
/** How the proxy rejects every request; undefined: it forwards them. */
let rejection: Rejection | undefined;
let device: Device;

beforeEach(async () => {
  proxy = await FaultProxy.open(harness);
  proxy.reject = () => rejection;
  device = await Device.make(harness, user, ["sessions", "facts", "projects"], true);
  device.sync = createSync(memory());
});

function createSync(known: ServerKnowledgeStore, retryMs = 100, owner = device): Replicator {
  return new Replicator({
    server: { base: proxy.url, headers: { authorization: `Bearer ${user.token}` } },
    collections: owner.db.collections,
    store: known,
    retryMs,
    waitForLeadership: false,
  });
}

afterEach(async () => {
  rejection = undefined;
  await device.close();
  proxy.close();
});

const kind = () => kindOf(device.sync!.state$.value);

test("the app sends no request until the time in Retry-After has passed", async () => {
  rejection = { status: 429, retryAfter: "2" };
  await device.insert("sessions", session("s"));
  void device.sync!.start();
  await eventually("the status is busy", () => kind() === "busy");
  const first = proxy.requests.length;
  rejection = undefined;
  await eventually("the row is stored", async () => (await harness.rows(user, "sessions")).length === 1);
  expect(first).toBe(1);
  expect(proxy.requests[1]!.at - proxy.requests[0]!.at).toBeGreaterThan(1_900);
  await eventually("the status is live after the delay", () => kind() === "live");
});

test("Retry-After applies to all collections and the stream", async () => {
  await device.sync!.start();
  await eventually("the status is live", () => kind() === "live");
  rejection = { status: 503, retryAfter: "2" };
  await device.insert("sessions", session("s"));
  await eventually("the status is busy", () => kind() === "busy");
  await eventually(
    "earlier requests are answered",
    () => performance.now() - proxy.requests.at(-1)!.at > 500,
  );
  const before = proxy.requests.length;
  device.sync!.syncNow(); // must not end the delay
  await device.insert("facts", fact("f"));
  await eventually("another request was sent", () => proxy.requests.length > before);
  expect(proxy.requests[before]!.at - proxy.requests[before - 1]!.at).toBeGreaterThan(1_800);
  expect(kind()).toBe("busy");
  rejection = undefined;
  await eventually("the row is stored", async () => (await harness.rows(user, "sessions")).length === 1);
  await eventually("the status is live after the delay", () => kind() === "live");
});

test("a 503 without Retry-After is retried like any other failure", async () => {
  rejection = { status: 503 };
  void device.sync!.start();
  await eventually("the status is offline", () => kind() === "offline");
  await eventually("another request was sent", () => proxy.requests.length > 2);
});

test("syncNow retries a failed push at once", async () => {
  device.sync = createSync(memory(), 60_000);
  const connected = firstValueFrom(device.sync.connected$); // awaited below, because connecting would trigger the retry
  await device.sync.start();
  await connected;
  proxy.reject = (path) => (path.includes("/push") ? { status: 502 } : undefined);
  const failed = firstValueFrom(device.sync.state$.pipe(filter((state) => kindOf(state) === "offline")));
  await device.insert("sessions", session("s"));
  await failed; // an event, because a running pull may set the status to live right away
  proxy.reject = () => undefined;
  device.sync.syncNow();
  await eventually("the row is stored", async () => (await harness.rows(user, "sessions")).length === 1);
});

test("after each failed push, the status becomes live again", async () => {
  await device.sync!.start();
  await eventually("the status is live", () => kind() === "live");
  for (let n = 0; n < 10; n++) {
    proxy.reject = (path) => (path.includes("/push") ? { status: 502 } : undefined);
    await device.insert("sessions", session(`s${n}`));
    await eventually("the status is offline", () => kind() === "offline");
    proxy.reject = () => undefined;
    await eventually("the status is live again", () => kind() === "live", 15_000);
  }
});

test.each<[string, Rejection]>([
  ["offline", { status: 502 }],
  ["busy", { status: 429, retryAfter: "1" }],
])("a block embedded while its push waits (%s) is stored with vectors", async (expectedKind, refused) => {
  const tablet = await Device.make(harness, user, ["documents", "vectorEmbeddings"], true);
  tablet.sync = createSync(memory(), 100, tablet);
  onTestFinished(() => tablet.close());
  await tablet.insert("documents", document("d", user));
  await tablet.sync.start();
  await eventually(
    "the document is stored",
    async () => (await harness.rows(user, "documents")).length === 1,
  );
  proxy.reject = (path) => (path.includes("/push") ? refused : undefined);
  await tablet.insert("vectorEmbeddings", block("d", 0, ["one"], { dims: 0, model: "", embedding: null }));
  await eventually("it failed", () => kindOf(tablet.sync!.state$.value) === expectedKind);
  const embedding = Buffer.from(new Float32Array([1, 0]).buffer).toString("base64");
  await tablet.edit("vectorEmbeddings", "d.0", () => ({ dims: 2, model: "m", embedding }));
  const { checkpoint } = await harness.request<any>(user, "/v1/sync/documents/1/pull?lwt=0&id=&limit=1000");
  proxy.reject = () => undefined;
  await eventually(
    "the row is stored",
    async () => (await harness.rows(user, "vectorEmbeddings")).length === 1,
  );
  await eventually(
    "no row is waiting",
    async () => !("vectorEmbeddings" in (await tablet.sync!.countPending(10))),
  );
  const [row] = await harness.rows(user, "vectorEmbeddings");
  expect(row!["embedding"]).toBe(embedding);
  const end = await harness.request<any>(user, "/v1/sync/vectorEmbeddings/1/pull?lwt=0&id=&limit=1000");
  expect(end.checkpoint.lwt - checkpoint.lwt).toBe(1); // the server stored only one write
});

test("a server older than the app is reported as behind, not as busy", async () => {
  rejection = { status: 503, retryAfter: "60", code: "TOO_NEW" };
  void device.sync!.start();
  await eventually("the status is behind", () => kind() === "behind");
  rejection = undefined; // the server was updated
  await eventually("it is live without waiting for a minute", () => kind() === "live");
});

test("only a pull sets the status to live", async () => {
  await device.sync!.start();
  await eventually("the status is live", () => kind() === "live");
  const badGateway = { status: 502 };
  proxy.reject = (path) => (path.includes("/pull") || path.includes("/stream") ? badGateway : undefined);
  proxy.disconnect();
  await eventually("the status is offline", () => kind() === "offline");
  const pulls = proxy.count("sessions/1/pull");
  const kinds = new Set<string>();
  const subscription = device.sync!.state$.subscribe(() => kinds.add(kind()));
  await device.insert("sessions", session("s"));
  await eventually("it was pushed", async () => (await harness.rows(user, "sessions")).length === 1);
  await eventually("and a pull was sent", () => proxy.count("sessions/1/pull") > pulls);
  expect([...kinds]).toEqual(["offline"]);
  subscription.unsubscribe();
  proxy.reject = () => undefined;
  await eventually("the status is live again", () => kind() === "live");
});

test("syncNow and stop end the delay before the epoch is requested again", async () => {
  device.sync = createSync(memory(), 60_000);
  rejection = { status: 502 };
  const started = device.sync.start();
  await eventually("the request failed", () => kind() === "offline");
  device.sync.syncNow();
  await eventually("a second request was sent", () => proxy.requests.length === 2);
  await device.sync.stop();
  await started;
  expect(device.sync.state$.value).toEqual({ kind: "stopped", error: undefined });
});

test("a sync stopped during its start sends no further request", async () => {
  const save = async () => device.sync!.stop();
  device.sync = createSync({ load: async () => ({ epoch: "one" }), save });
  const fetches = vi.spyOn(globalThis, "fetch");
  onTestFinished(() => fetches.mockRestore());
  await device.sync.start();
  await new Promise((resolve) => setImmediate(resolve));
  expect(fetches.mock.calls).toEqual([]);
});
