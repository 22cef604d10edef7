/** The app's client sends pushes that must be split, or that a proxy rejects as a whole. */

import { push } from "../../web/src/backend/sync/push.ts";
import type { ServerKnowledgeStore } from "../../web/src/backend/sync/replication.ts";
import type { Row } from "../../web/src/core/sync/twoWayMerge.ts";
import { ApiError } from "../../web/src/lib/http.ts";
import { UNSENDABLE } from "../../web/src/core/sync/unsendable.ts";
import { kindOf } from "../../web/src/backend/sync/tabCoordinator.ts";
import { Device, document, episode, fact, memory, session, T } from "./device.ts";
import { eventually } from "./eventually.ts";
import { FaultProxy, type RecordedRequest } from "./faultProxy.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

/** A text that makes the proxy reject the request. */
const BAD = "unspeakable";
const MIB = 2 ** 20;

let proxy: FaultProxy;
let device: Device;
let known: ServerKnowledgeStore;
let isImported: ((turn: Row) => Promise<boolean>) | undefined;

beforeEach(async () => {
  proxy = await FaultProxy.open(harness);
  device = await Device.make(harness, user, ["sessions", "facts", "documents", "episodes"], true);
  known = memory();
  isImported = undefined;
});

afterEach(async () => {
  await device.close();
  proxy.close();
});

const kind = () => kindOf(device.sync!.state$.value);
const pushes = () => proxy.requests.filter(({ path }) => path.includes("/push"));
const rowsOf = ({ body }: RecordedRequest): any[] =>
  JSON.parse(body).map((write: any) => write.newDocumentState);
const storedIds = async (collection: string) =>
  (await harness.liveRows(user, collection)).map(({ id }) => id as string).sort();
const error = async (id: string) => (await device.row("sessions", id)).syncError;

/** Start the sync without waiting for it, so that a test fails instead of hanging. */
function online(): void {
  void device.startAppSync(known, undefined, proxy.url, isImported);
}

async function waitUntilPushed(): Promise<void> {
  await eventually("no row is waiting", async () => {
    const waiting = await device.sync!.countPending(1000);
    return device.sync!.hasCounted && Object.keys(waiting).length === 0;
  });
  await device.sync!.awaitInSync();
}

/** Reject every request with the bad text, like a filtering company proxy. */
function rejectBad(status: number): void {
  proxy.reject = (_, body) => (body.includes(BAD) ? { status, code: "BAD_REQUEST" } : undefined);
}

test("large pushes are split at four million characters", async () => {
  const ids = Array.from({ length: 100 }, (_, i) => `f${i}`);
  await device.insert("facts", ...ids.map((id) => ({ ...fact(id), value: "x".repeat(400_000) })));
  online();
  await waitUntilPushed();
  expect(await storedIds("facts")).toEqual(ids.sort());
  expect((await device.rows("facts")).filter((row) => row.syncError)).toEqual([]);
  const sizes = pushes().map(({ body }) => body.length);
  expect(Math.max(...sizes)).toBeLessThan(4.1 * MIB);
  expect(sizes.length).toBe(10); // 100 rows of 400 kB: 10 per request of 4 MiB
});

/** Prepare a batch that takes two requests. Its first document was borrowed on the device and on the server. */
async function prepareLargeBatch(): Promise<void> {
  await device.insert("documents", document("d", user));
  online();
  await waitUntilPushed();
  await device.sync!.stop();
  const [stored] = await harness.rows(user, "documents");
  const theirs = { ...stored, activeSessions: ["theirs"] };
  const body = JSON.stringify([{ newDocumentState: theirs, assumedMasterState: stored }]);
  await harness.request(user, "/v1/sync/documents/1/push", { method: "POST", body });
  await device.edit("documents", "d", () => ({ activeSessions: ["ours"] }));
  const many = { activeSessions: Array.from({ length: 10_000 }, (_, i) => String(i).padStart(90, "s")) };
  for (let i = 0; i < 6; i++) await device.insert("documents", document(`e${i}`, user, many));
  proxy.requests.length = 0;
}

test("repeating a partly failed batch applies no row twice", async () => {
  await prepareLargeBatch();
  proxy.reject = (path) => (path.includes("/push") && pushes().length === 2 ? { status: 502 } : undefined);
  online();
  await waitUntilPushed();
  expect(pushes().map((push) => rowsOf(push).some(({ id }) => id === "d"))).toEqual([
    true,
    false,
    true,
    false,
    ...pushes()
      .slice(4)
      .map(() => true), // then only the merged row is pushed again
  ]);
  const stored = await harness.liveRows(user, "documents");
  expect(stored.find(({ id }) => id === "d")!["activeSessions"].sort()).toEqual(["ours", "theirs"]);
  expect(stored.length).toBe(7);
  const count = pushes().length;
  device.sync!.syncNow();
  await device.sync!.awaitInSync();
  expect(pushes().length).toBe(count);
});

test("after Retry-After, only the rejected part of a batch is repeated", async () => {
  const detail = { value: "x".repeat(900_000) };
  await device.insert("facts", ...Array.from({ length: 6 }, (_, i) => ({ ...fact(`f${i}`), ...detail })));
  proxy.reject = (path) =>
    path.includes("/push") && pushes().length === 2 ? { status: 429, retryAfter: "1" } : undefined;
  online();
  await waitUntilPushed();
  expect(pushes().map((push) => rowsOf(push).map(({ id }) => id))).toEqual([
    ["f0", "f1", "f2", "f3"],
    ["f4", "f5"],
    ["f4", "f5"],
  ]);
  await eventually("the status is live", () => kind() === "live");
});

test.each([400, 403, 413, 422])("a row rejected with %i does not block other rows", async (status) => {
  rejectBad(status);
  const good = Array.from({ length: 20 }, (_, i) => `s${i}`);
  await device.insert("sessions", ...good.slice(0, 7).map((id) => session(id)));
  await device.insert("sessions", session("bad", { title: BAD }), session("worse", { title: BAD }));
  await device.insert("sessions", ...good.slice(7).map((id) => session(id)));
  online();
  await waitUntilPushed();
  expect(await storedIds("sessions")).toEqual(good.sort());
  for (const id of ["bad", "worse"]) {
    expect(await device.row("sessions", id)).toMatchObject({
      title: BAD,
      syncError: { code: "INVALID", message: UNSENDABLE },
    });
  }
  await eventually("the status is live", () => kind() === "live");
  const before = pushes().length; // it is not retried automatically
  device.sync!.syncNow();
  await device.sync!.awaitInSync();
  expect(pushes().length).toBe(before);

  // One row is corrected; the other is retried, rejected again and deleted.
  const marked = await error("worse");
  await device.edit("sessions", "bad", () => ({ title: "corrected", syncError: undefined }));
  await device.edit("sessions", "worse", () => ({ syncError: undefined }));
  await waitUntilPushed();
  expect(await storedIds("sessions")).toEqual([...good, "bad"].sort());
  expect((await device.row("sessions", "bad")).title).toBe("corrected");
  expect(await error("bad")).toBeUndefined();
  expect((await error("worse")).at > marked.at).toBe(true);
  const deleted = { ...session("worse"), title: "", _deleted: true };
  await device
    .collection("sessions")
    .findOne("worse")
    .incrementalModify(() => deleted as any);
  await waitUntilPushed();
  expect((await harness.rows(user, "sessions")).find(({ id }) => id === "worse")).toMatchObject({
    _deleted: true,
  });
});

test("an edit corrected after its rejection replaces the stored row", async () => {
  await device.insert("sessions", session("s", { title: "old" }));
  online();
  await waitUntilPushed();
  rejectBad(400);
  await device.edit("sessions", "s", () => ({ title: BAD }));
  await eventually("it is marked", async () => (await error("s")) !== undefined);
  expect((await error("s")).base).toMatch(/:\d+$/);
  await device.edit("sessions", "s", () => ({ title: "new", syncError: undefined }));
  await waitUntilPushed();
  expect((await harness.liveRows(user, "sessions"))[0]).toMatchObject({ title: "new" });
  expect((await device.row("sessions", "s")).title).toBe("new");
});

test("an edit corrected after its rejection keeps another device's change", async () => {
  await device.insert("documents", document("d", user, { accessCount: 1 }));
  online();
  await waitUntilPushed();
  rejectBad(400);
  await device.edit("documents", "d", () => ({ statusDetail: BAD }));
  await eventually("it is marked", async () => (await device.row("documents", "d")).syncError !== undefined);
  await device.sync!.stop();
  const [stored] = await harness.rows(user, "documents");
  const theirs = { ...stored, filename: "theirs.txt", accessCount: 3 };
  const body = JSON.stringify([{ newDocumentState: theirs, assumedMasterState: stored }]);
  await harness.request(user, "/v1/sync/documents/1/push", { method: "POST", body });
  proxy.reject = (path, body) =>
    path.includes("/pull") || body.includes(BAD) ? { status: 400, code: "BAD_REQUEST" } : undefined;
  await device.edit("documents", "d", () => ({ statusDetail: "corrected", syncError: undefined }));
  const started = device.startAppSync(known, undefined, proxy.url);
  await eventually(
    "the response arrives",
    async () => (await device.row("documents", "d")).filename === "theirs.txt",
  );
  expect((await harness.liveRows(user, "documents"))[0]).toMatchObject({
    filename: "theirs.txt",
    accessCount: 3,
  });
  proxy.reject = () => undefined;
  device.sync!.syncNow();
  await started;
});

test("a rejected row's neighbor is sent unchanged", async () => {
  const state = { ...session("bad", { title: BAD, syncError: { at: T } }), _deleted: false };
  const good = { newDocumentState: { ...session("good"), _deleted: false } };
  const sent: string[] = [];
  const answers = await push([{ newDocumentState: state, assumedMasterState: state }, good], async (body) => {
    sent.push(body);
    if (body.includes(BAD)) throw new ApiError(400, "BAD_REQUEST", "");
    return [];
  });
  expect(answers).toEqual([]);
  expect(sent.slice(1).map((body) => JSON.parse(body))).toEqual([[good]]);
});

test("a row with a lone surrogate does not block other rows", async () => {
  await device.insert("sessions", session("cut", { title: "\ud83d" }), session("good"));
  online();
  await waitUntilPushed();
  expect(await storedIds("sessions")).toContain("good");
  await eventually("the status is live", () => kind() === "live");
});

test("no row is marked as rejected by a server that rejects every push", async () => {
  proxy.reject = (path) => (path.includes("/push") ? { status: 404, code: "NOT_FOUND" } : undefined);
  await device.insert("sessions", session("a"), session("b"));
  online();
  await eventually(
    "it is tried again",
    () => pushes().filter((push) => rowsOf(push).length === 2).length > 1,
  );
  await eventually("the status is denied", () => kind() === "denied");
  expect((await device.rows("sessions")).filter((row) => row.syncError)).toEqual([]);
  proxy.reject = () => undefined;
  await eventually("they are stored", async () => (await storedIds("sessions")).length === 2);
  await eventually("the status is live", () => kind() === "live");
});

test("a rejected delete stays pending and its row gets no error", async () => {
  await device.insert("sessions", session("s"));
  online();
  await waitUntilPushed();
  proxy.reject = (_, body) =>
    body.includes('"_deleted":true') ? { status: 403, code: "FORBIDDEN" } : undefined;
  await device.remove("sessions", "s");
  await eventually("it is tried again", () => pushes().length > 3);
  await eventually("the status is denied", () => kind() === "denied");
  expect(await device.sync!.countPending(10)).toEqual({ sessions: 1 });
  proxy.reject = () => undefined;
  await waitUntilPushed();
  expect(await storedIds("sessions")).toEqual([]);
});

test("split pushes mark each imported turn as imported", async () => {
  isImported = async ({ id, userMessage }) => id !== "own" && userMessage !== "corrected";
  rejectBad(413);
  await device.insert("sessions", session("s"));
  await device.insert("episodes", episode("bad", "s", { userMessage: BAD }), episode("old", "s"));
  await device.insert("episodes", episode("own", "s"));
  online();
  await waitUntilPushed();
  const writesOf = ({ body }: RecordedRequest): any[] => JSON.parse(body);
  const sentTurns = () =>
    pushes()
      .flatMap(writesOf)
      .map(({ newDocumentState: { id, userMessage }, imported }) => ({ id, userMessage, imported }))
      .filter(({ userMessage }) => userMessage !== undefined);
  expect(pushes().length).toBeGreaterThan(2);
  await device.edit("episodes", "bad", () => ({ syncError: undefined })); // retried unchanged
  await eventually(
    "it is marked again",
    async () => (await device.row("episodes", "bad")).syncError !== undefined,
  );
  await waitUntilPushed();
  expect(sentTurns().find(({ id }) => id === "s")).toBeUndefined();
  expect(new Set(sentTurns().map(({ id, imported }) => `${id} ${imported}`))).toEqual(
    new Set(["bad true", "old true", "own false"]),
  );
  proxy.requests.length = 0;
  await device.edit("episodes", "bad", () => ({ userMessage: "corrected", syncError: undefined }));
  await waitUntilPushed();
  expect(sentTurns().filter(({ userMessage }) => userMessage === "corrected")[0]).toMatchObject({
    imported: false,
  });
  expect(await storedIds("episodes")).toEqual(["bad", "old", "own"]);
});
