/** A server that has too much to do says when to ask again. It is left alone so long, and the app knows why. */

import { filter, firstValueFrom } from "rxjs";
import { kindOf } from "../../web/src/backend/sync/syncCoordinator.ts";
import { Replicator, type ServerKnowledgeStore } from "../../web/src/backend/sync/replication.ts";
import { block, Device, document, fact, memory, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { Gate, type Refused } from "./gate.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

let gate: Gate;
/** How the gate answers instead of letting through; undefined: it lets through. */
let refusal: Refused | undefined;
let device: Device;

beforeEach(async () => {
  gate = await Gate.open(harness);
  gate.refuses = () => refusal;
  device = await Device.make(harness, user, ["sessions", "facts", "projects"], true);
  device.sync = sync(memory());
});

function sync(known: ServerKnowledgeStore, retryMs = 100, of = device): Replicator {
  return new Replicator({
    server: { base: gate.url, headers: { authorization: `Bearer ${user.token}` } },
    collections: of.db.collections,
    store: known,
    retryMs,
    waitForLeadership: false,
  });
}

afterEach(async () => {
  refusal = undefined;
  await device.close();
  gate.close();
});

const kind = () => kindOf(device.sync!.state$.value);

test("nothing is asked before the wait is over, and then all goes through", async () => {
  refusal = { status: 429, retryAfter: "2" };
  await device.insert("sessions", session("s"));
  void device.sync!.start();
  await eventually("it says so", () => kind() === "busy");
  const first = gate.asked.length;
  refusal = undefined;
  await eventually("it is there", async () => (await harness.rows(user, "sessions")).length === 1);
  expect(first).toBe(1);
  expect(gate.asked[1]!.at - gate.asked[0]!.at).toBeGreaterThan(1_900);
  await eventually("it is over", () => kind() === "live");
});

test("it is heeded in the middle of things, by all collections and the stream", async () => {
  await device.sync!.start();
  await eventually("it is live", () => kind() === "live");
  refusal = { status: 503, retryAfter: "2" };
  await device.insert("sessions", session("s"));
  await eventually("it says so", () => kind() === "busy");
  await eventually("what was on its way is answered", () => performance.now() - gate.asked.at(-1)!.at > 500);
  const before = gate.asked.length;
  device.sync!.syncNow(); // nobody's impatience ends it
  await device.insert("facts", fact("f"));
  await eventually("asked again", () => gate.asked.length > before);
  expect(gate.asked[before]!.at - gate.asked[before - 1]!.at).toBeGreaterThan(1_800);
  expect(kind()).toBe("busy");
  refusal = undefined;
  await eventually("it is there", async () => (await harness.rows(user, "sessions")).length === 1);
  await eventually("it is over", () => kind() === "live");
});

test("who does not say when is asked as after any failure", async () => {
  refusal = { status: 503 };
  void device.sync!.start();
  await eventually("it says so", () => kind() === "offline");
  await eventually("asked again", () => gate.asked.length > 2);
});

test("what failed waits for its next try, and no longer once somebody looks", async () => {
  device.sync = sync(memory(), 60_000);
  const connected = firstValueFrom(device.sync.connected$); // later it would hurry what failed
  await device.sync.start();
  await connected;
  gate.refuses = (path) => (path.includes("/push") ? { status: 502 } : undefined);
  const failed = firstValueFrom(device.sync.state$.pipe(filter((state) => kindOf(state) === "offline")));
  await device.insert("sessions", session("s"));
  await failed; // a pull that is on its way may call it live again at once
  gate.refuses = () => undefined;
  device.sync.syncNow();
  await eventually("it is there", async () => (await harness.rows(user, "sessions")).length === 1);
});

test("a push that goes through after it failed makes it live again, each time", async () => {
  await device.sync!.start();
  await eventually("it is live", () => kind() === "live");
  for (let n = 0; n < 10; n++) {
    gate.refuses = (path) => (path.includes("/push") ? { status: 502 } : undefined);
    await device.insert("sessions", session(`s${n}`));
    await eventually("it failed", () => kind() === "offline");
    gate.refuses = () => undefined;
    await eventually("it is live again", () => kind() === "live", 15_000);
  }
});

test.each<[string, Refused]>([
  ["offline", { status: 502 }],
  ["busy", { status: 429, retryAfter: "1" }],
])(
  "a block that was embedded while it waited (%s) is sent with its vectors, and was never there without",
  async (is, refused) => {
    const own = await Device.make(harness, user, ["documents", "vectorEmbeddings"], true);
    own.sync = sync(memory(), 100, own);
    onTestFinished(() => own.close());
    await own.insert("documents", document("d", user));
    await own.sync.start();
    await eventually(
      "the document is there",
      async () => (await harness.rows(user, "documents")).length === 1,
    );
    gate.refuses = (path) => (path.includes("/push") ? refused : undefined);
    await own.insert("vectorEmbeddings", block("d", 0, ["one"], { dims: 0, model: "", embedding: null }));
    await eventually("it failed", () => kindOf(own.sync!.state$.value) === is);
    const embedding = Buffer.from(new Float32Array([1, 0]).buffer).toString("base64");
    await own.edit("vectorEmbeddings", "d.0", () => ({ dims: 2, model: "m", embedding }));
    const { checkpoint } = await harness.call<any>(user, "/v1/sync/documents/0/pull?lwt=0&id=&limit=1000");
    gate.refuses = () => undefined;
    await eventually("it is there", async () => (await harness.rows(user, "vectorEmbeddings")).length === 1);
    await eventually(
      "nothing waits",
      async () => !("vectorEmbeddings" in (await own.sync!.countPending(10))),
    );
    const [row] = await harness.rows(user, "vectorEmbeddings");
    expect(row!["embedding"]).toBe(embedding);
    const end = await harness.call<any>(user, "/v1/sync/vectorEmbeddings/0/pull?lwt=0&id=&limit=1000");
    expect(end.checkpoint.lwt - checkpoint.lwt).toBe(1); // the only time that it was written
  },
);

test("a server that is older than the app says so, and is not called busy", async () => {
  refusal = { status: 503, retryAfter: "60", code: "TOO_NEW" };
  void device.sync!.start();
  await eventually("it says so", () => kind() === "behind");
  refusal = undefined; // it was brought up to date
  await eventually("nothing had to wait for a minute", () => kind() === "live");
});

test("only what a pull tells makes it live: what was forgotten elsewhere is heeded first", async () => {
  await device.sync!.start();
  await eventually("it is live", () => kind() === "live");
  const gone = { status: 502 };
  gate.refuses = (path) => (path.includes("/pull") || path.includes("/stream") ? gone : undefined);
  gate.breakOff();
  await eventually("it is away", () => kind() === "offline");
  const pulls = gate.times("sessions/0/pull");
  const kinds = new Set<string>();
  const watch = device.sync!.state$.subscribe(() => kinds.add(kind()));
  await device.insert("sessions", session("s"));
  await eventually("it was pushed", async () => (await harness.rows(user, "sessions")).length === 1);
  await eventually("and asked what is new", () => gate.times("sessions/0/pull") > pulls);
  expect([...kinds]).toEqual(["offline"]);
  watch.unsubscribe();
  gate.refuses = () => undefined;
  await eventually("it is live again", () => kind() === "live");
});

test("who looks now, or stops, does not wait for the next try to learn the epoch", async () => {
  device.sync = sync(memory(), 60_000);
  refusal = { status: 502 };
  const begun = device.sync.start();
  await eventually("it was asked in vain", () => kind() === "offline");
  device.sync.syncNow();
  await eventually("it is asked again", () => gate.asked.length === 2);
  await device.sync.stop();
  await begun;
  expect(device.sync.state$.value).toEqual({ kind: "stopped", error: undefined });
});

test("who stops while it begins opens nothing any more", async () => {
  const save = async () => device.sync!.stop();
  device.sync = sync({ load: async () => ({ epoch: "one" }), save });
  const fetches = vi.spyOn(globalThis, "fetch");
  onTestFinished(() => fetches.mockRestore());
  await device.sync.start();
  await new Promise((resolve) => setImmediate(resolve));
  expect(fetches.mock.calls).toEqual([]);
});
