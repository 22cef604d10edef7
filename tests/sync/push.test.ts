/** Pushes that cannot go as one, or not at all: the app's own client, and the real server behind the gate. */

import { push } from "../../web/src/backend/sync/push.ts";
import type { ServerKnowledgeStore } from "../../web/src/backend/sync/replication.ts";
import type { Row } from "../../web/src/core/sync/twoWayMerge.ts";
import { ApiError } from "../../web/src/lib/http.ts";
import { storedSentences } from "../../web/src/core/chat/storedSentences.ts";
import { kindOf } from "../../web/src/backend/sync/syncCoordinator.ts";
import { Device, document, episode, fact, memory, session, T } from "./device.ts";
import { eventually } from "./eventually.ts";
import { Gate, type Asked } from "./gate.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

/** What the gate does not let through. */
const BAD = "unspeakable";
const MIB = 2 ** 20;

let gate: Gate;
let device: Device;
let known: ServerKnowledgeStore;
let isImported: ((turn: Row) => Promise<boolean>) | undefined;

beforeEach(async () => {
  gate = await Gate.open(harness);
  device = await Device.make(harness, user, ["sessions", "facts", "documents", "episodes"], true);
  known = memory();
  isImported = undefined;
});

afterEach(async () => {
  await device.close();
  gate.close();
});

const kind = () => kindOf(device.sync!.state$.value);
const pushes = () => gate.asked.filter(({ path }) => path.includes("/push"));
const rowsOf = ({ body }: Asked): any[] => JSON.parse(body).map((write: any) => write.newDocumentState);
const idsThere = async (collection: string) =>
  (await harness.live(user, collection)).map(({ id }) => id as string).sort();
const error = async (id: string) => (await device.row("sessions", id)).syncError;

/** Does not wait: what never ends is to fail, and not to hang. */
function online(): void {
  void device.own(known, undefined, gate.url, isImported);
}

async function nothingWaits(): Promise<void> {
  await eventually("nothing waits", async () => {
    const waiting = await device.sync!.countPending(1000);
    return device.sync!.hasCounted && Object.keys(waiting).length === 0;
  });
  await device.sync!.awaitInSync();
}

/** A text that no gate of a company lets through, for one. */
function refuseBad(status: number): void {
  gate.refuses = (_, body) => (body.includes(BAD) ? { status, code: "BAD_REQUEST" } : undefined);
}

test("forty million characters go up, in requests of four", async () => {
  const ids = Array.from({ length: 100 }, (_, i) => `f${i}`);
  await device.insert("facts", ...ids.map((id) => ({ ...fact(id), value: "x".repeat(400_000) })));
  online();
  await nothingWaits();
  expect(await idsThere("facts")).toEqual(ids.sort());
  expect((await device.rows("facts")).filter((row) => row.syncError)).toEqual([]);
  const sizes = pushes().map(({ body }) => body.length);
  expect(Math.max(...sizes)).toBeLessThan(4.1 * MIB);
  expect(sizes.length).toBe(10); // a row is not sent by itself for that
});

/** Two documents of a batch that takes two requests; the first was borrowed here, and elsewhere meanwhile. */
async function borrowed(): Promise<void> {
  await device.insert("documents", document("d", user));
  online();
  await nothingWaits();
  await device.sync!.stop();
  const [stored] = await harness.rows(user, "documents");
  const theirs = { ...stored, activeSessions: ["theirs"] };
  const body = JSON.stringify([{ newDocumentState: theirs, assumedMasterState: stored }]);
  await harness.call(user, "/v1/sync/documents/0/push", { method: "POST", body });
  await device.edit("documents", "d", () => ({ activeSessions: ["ours"] }));
  const many = { activeSessions: Array.from({ length: 10_000 }, (_, i) => String(i).padStart(90, "s")) };
  for (let i = 0; i < 6; i++) await device.insert("documents", document(`e${i}`, user, many));
  gate.asked.length = 0;
}

test("a batch of which a part fails is sent once more, and what was taken before is not taken twice", async () => {
  await borrowed();
  gate.refuses = (path) => (path.includes("/push") && pushes().length === 2 ? { status: 502 } : undefined);
  online();
  await nothingWaits();
  expect(pushes().map((push) => rowsOf(push).some(({ id }) => id === "d"))).toEqual([
    true,
    false,
    true,
    false,
    ...pushes()
      .slice(4)
      .map(() => true), // the merged row, once more
  ]);
  const there = await harness.live(user, "documents");
  expect(there.find(({ id }) => id === "d")!["activeSessions"].sort()).toEqual(["ours", "theirs"]);
  expect(there.length).toBe(7);
  const quiet = pushes().length;
  device.sync!.syncNow();
  await device.sync!.awaitInSync();
  expect(pushes().length).toBe(quiet);
});

test("a part that is asked to wait is sent when that is over, and not what went before it", async () => {
  const detail = { value: "x".repeat(900_000) };
  await device.insert("facts", ...Array.from({ length: 6 }, (_, i) => ({ ...fact(`f${i}`), ...detail })));
  gate.refuses = (path) =>
    path.includes("/push") && pushes().length === 2 ? { status: 429, retryAfter: "1" } : undefined;
  online();
  await nothingWaits();
  expect(pushes().map((push) => rowsOf(push).map(({ id }) => id))).toEqual([
    ["f0", "f1", "f2", "f3"],
    ["f4", "f5"],
    ["f4", "f5"],
  ]);
  await eventually("it is live", () => kind() === "live");
});

test.each([400, 403, 413, 422])(
  "what alone is refused with %i stays here, marked; the rest goes up",
  async (status) => {
    refuseBad(status);
    const good = Array.from({ length: 20 }, (_, i) => `s${i}`);
    await device.insert("sessions", ...good.slice(0, 7).map((id) => session(id)));
    await device.insert("sessions", session("bad", { title: BAD }), session("worse", { title: BAD }));
    await device.insert("sessions", ...good.slice(7).map((id) => session(id)));
    online();
    await nothingWaits();
    expect(await idsThere("sessions")).toEqual(good.sort());
    for (const id of ["bad", "worse"]) {
      expect(await device.row("sessions", id)).toMatchObject({
        title: BAD,
        syncError: { code: "INVALID", message: storedSentences.refused },
      });
    }
    await eventually("it is live", () => kind() === "live");
    const before = pushes().length; // it does not try by itself
    device.sync!.syncNow();
    await device.sync!.awaitInSync();
    expect(pushes().length).toBe(before);

    // Mended, tried again in vain, and deleted.
    const marked = await error("worse");
    await device.edit("sessions", "bad", () => ({ title: "mended", syncError: undefined }));
    await device.edit("sessions", "worse", () => ({ syncError: undefined }));
    await nothingWaits();
    expect(await idsThere("sessions")).toEqual([...good, "bad"].sort());
    expect((await device.row("sessions", "bad")).title).toBe("mended");
    expect(await error("bad")).toBeUndefined();
    expect((await error("worse")).at > marked.at).toBe(true);
    const gone = { ...session("worse"), title: "", _deleted: true };
    await device
      .of("sessions")
      .findOne("worse")
      .incrementalModify(() => gone as any);
    await nothingWaits();
    expect((await harness.rows(user, "sessions")).find(({ id }) => id === "worse")).toMatchObject({
      _deleted: true,
    });
  },
);

test("an edit that is refused and mended takes the place of what the server has", async () => {
  await device.insert("sessions", session("s", { title: "old" }));
  online();
  await nothingWaits();
  refuseBad(400);
  await device.edit("sessions", "s", () => ({ title: BAD }));
  await eventually("it is marked", async () => (await error("s")) !== undefined);
  expect((await error("s")).base).toMatch(/:\d+$/);
  await device.edit("sessions", "s", () => ({ title: "new", syncError: undefined }));
  await nothingWaits();
  expect((await harness.live(user, "sessions"))[0]).toMatchObject({ title: "new" });
  expect((await device.row("sessions", "s")).title).toBe("new");
});

test("what the server has since another device changed it is not overwritten", async () => {
  await device.insert("documents", document("d", user, { accessCount: 1 }));
  online();
  await nothingWaits();
  refuseBad(400);
  await device.edit("documents", "d", () => ({ statusDetail: BAD }));
  await eventually("it is marked", async () => (await device.row("documents", "d")).syncError !== undefined);
  await device.sync!.stop();
  const [stored] = await harness.rows(user, "documents");
  const theirs = { ...stored, filename: "theirs.txt", accessCount: 3 };
  const body = JSON.stringify([{ newDocumentState: theirs, assumedMasterState: stored }]);
  await harness.call(user, "/v1/sync/documents/0/push", { method: "POST", body });
  gate.refuses = (path, body) =>
    path.includes("/pull") || body.includes(BAD) ? { status: 400, code: "BAD_REQUEST" } : undefined;
  await device.edit("documents", "d", () => ({ statusDetail: "mended", syncError: undefined }));
  const again = device.own(known, undefined, gate.url);
  await eventually(
    "it is answered",
    async () => (await device.row("documents", "d")).filename === "theirs.txt",
  );
  expect((await harness.live(user, "documents"))[0]).toMatchObject({
    filename: "theirs.txt",
    accessCount: 3,
  });
  gate.refuses = () => undefined;
  device.sync!.syncNow();
  await again;
});

test("a row beside one that was marked before is sent as it is", async () => {
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

test("half a character in a title holds up no other row", async () => {
  await device.insert("sessions", session("cut", { title: "\ud83d" }), session("good"));
  online();
  await nothingWaits();
  expect(await idsThere("sessions")).toContain("good");
  await eventually("it is live", () => kind() === "live");
});

test("a server that accepts no push at all marks nothing, and is not called away", async () => {
  gate.refuses = (path) => (path.includes("/push") ? { status: 404, code: "NOT_FOUND" } : undefined);
  await device.insert("sessions", session("a"), session("b"));
  online();
  await eventually(
    "it is tried again",
    () => pushes().filter((push) => rowsOf(push).length === 2).length > 1,
  );
  await eventually("it says so", () => kind() === "denied");
  expect((await device.rows("sessions")).filter((row) => row.syncError)).toEqual([]);
  gate.refuses = () => undefined;
  await eventually("they are there", async () => (await idsThere("sessions")).length === 2);
  await eventually("it is live", () => kind() === "live");
});

test("a delete is not marked when it is refused: it waits", async () => {
  await device.insert("sessions", session("s"));
  online();
  await nothingWaits();
  gate.refuses = (_, body) =>
    body.includes('"_deleted":true') ? { status: 403, code: "FORBIDDEN" } : undefined;
  await device.remove("sessions", "s");
  await eventually("it is tried again", () => pushes().length > 3);
  await eventually("it says so", () => kind() === "denied");
  expect(await device.sync!.countPending(10)).toEqual({ sessions: 1 });
  gate.refuses = () => undefined;
  await nothingWaits();
  expect(await idsThere("sessions")).toEqual([]);
});

test("what the device knows to be imported is said of each turn, in whatever parts it goes, and of no other row", async () => {
  isImported = async ({ id, userMessage }) => id !== "own" && userMessage !== "mended";
  refuseBad(413);
  await device.insert("sessions", session("s"));
  await device.insert("episodes", episode("bad", "s", { userMessage: BAD }), episode("old", "s"));
  await device.insert("episodes", episode("own", "s"));
  online();
  await nothingWaits();
  const writesOf = ({ body }: Asked): any[] => JSON.parse(body);
  const said = () =>
    pushes()
      .flatMap(writesOf)
      .map(({ newDocumentState: { id, userMessage }, imported }) => ({ id, userMessage, imported }))
      .filter(({ userMessage }) => userMessage !== undefined);
  expect(pushes().length).toBeGreaterThan(2);
  await device.edit("episodes", "bad", () => ({ syncError: undefined })); // tried again as it is
  await eventually(
    "it is marked anew",
    async () => (await device.row("episodes", "bad")).syncError !== undefined,
  );
  await nothingWaits();
  expect(said().find(({ id }) => id === "s")).toBeUndefined();
  expect(new Set(said().map(({ id, imported }) => `${id} ${imported}`))).toEqual(
    new Set(["bad true", "old true", "own false"]),
  );
  gate.asked.length = 0;
  await device.edit("episodes", "bad", () => ({ userMessage: "mended", syncError: undefined }));
  await nothingWaits();
  expect(said().filter(({ userMessage }) => userMessage === "mended")[0]).toMatchObject({ imported: false });
  expect(await idsThere("episodes")).toEqual(["bad", "old", "own"]);
});
