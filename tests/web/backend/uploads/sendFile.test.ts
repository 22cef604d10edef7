/** Send files to the server: only the server's own errors end an upload, and the document's row shows progress. */

import { insert, T } from "../../device.ts";
import {
  answering,
  documents,
  LATER,
  openUploads,
  records,
  TEXT,
  texts,
  until,
  waiting,
  withUploads,
} from "../../uploads.ts";
import { soon } from "../../../soon.ts";

/** Only the server reads UTF-32. */
const UTF32 = Buffer.from("fffe00004100000042000000", "hex");

withUploads();

test.each([
  [403, "text/html", "<h1>Blocked</h1>"],
  [404, "text/plain", "not found"],
  [413, "text/html", "<h1>Too large</h1>"],
  [404, "application/json", '{"error":"no route"}'],
  [200, "text/html", "<h1>Sign in to the train's network</h1>"],
])("a response from something else than the server (%i %s %s) loses no file", async (status, type, body) => {
  const base = await answering((_, response) =>
    response.writeHead(status, { "content-type": type }).end(body),
  );
  const harness = openUploads(records, { base });
  harness.hear("live");
  harness.files.rows.set("text", waiting("text", TEXT));
  harness.files.rows.set("utf32", waiting("utf32", UTF32));
  void harness.uploads.resume();
  await until(harness, "text", "done");
  await until(harness, "utf32", "needs-server");
  expect(await texts("text")).toBe(TEXT);
  expect([...harness.files.rows.keys()]).toEqual(["utf32"]);
});

test("a file whose parser cannot be loaded waits for reconnection", async () => {
  const document = { id: "f", status: "ready" };
  const base = await answering((_, response) => response.end(JSON.stringify({ document, existing: false })));
  const harness = openUploads(records, { base });
  const { Worker } = globalThis;
  class Unloaded extends EventTarget {
    postMessage = () => queueMicrotask(() => this.dispatchEvent(new Event("error")));
    terminate(): void {}
  }
  vi.stubGlobal("Worker", Unloaded);
  onTestFinished(() => void vi.stubGlobal("Worker", Worker));
  harness.files.rows.set("f", waiting("f", TEXT));
  void harness.uploads.resume();
  harness.hear("offline");
  await until(harness, "f", "needs-server");
  expect([...harness.files.rows.keys()]).toEqual(["f"]);
  harness.hear("live");
  await until(harness, "f", "done");
  expect(harness.files.rows.size).toBe(0);
});

test("a server rejection ends the upload", async () => {
  const body = JSON.stringify({ code: "TOO_LARGE", detail: "It is too large." });
  const base = await answering((_, response) => response.writeHead(413).end(body));
  const harness = openUploads(records, { base });
  harness.hear("live");
  harness.files.rows.set("f", waiting("f", TEXT));
  void harness.uploads.resume();
  await until(harness, "f", "failed");
  expect(harness.task("f")).toMatchObject({ code: "TOO_LARGE", message: "It is too large." });
  expect(harness.files.rows.size).toBe(0);
  expect(await documents()).toEqual([]);
});

/** Record timers with the durations of retry delays instead of starting them. The test runs them. */
function recordTimers() {
  const timers: { ms: number; run: () => void }[] = [];
  const { setTimeout: real } = globalThis;
  const hold = (run: () => void, ms = 0) =>
    [5_000, 10_000, 40_000].includes(ms) ? void timers.push({ ms, run }) : real(run, ms);
  const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation(hold as typeof setTimeout);
  onTestFinished(() => spy.mockRestore());
  return timers;
}

test("a file that only the server can read is sent again after a delay", async () => {
  let sent = 0;
  const base = await answering((request, response) => {
    if (request.method !== "POST") return void response.end("{}");
    sent++;
    response.writeHead(503, sent === 1 ? { "retry-after": "40" } : {});
    response.end('{"code":"BUSY","detail":"Later."}');
  });
  const harness = openUploads(records, { base });
  harness.files.rows.set("f", waiting("f", UTF32));
  const timers = recordTimers();
  harness.hear("live");
  void harness.uploads.resume();
  await until(harness, "f", "needs-server");
  await harness.uploads.add([new File([TEXT], "a.txt")], null); // runs after all tasks that were started before
  for (let n = 0; n < 10; n++) harness.hear(n === 5 ? "offline" : "live");
  await until(harness, harness.uploads.tasks$.value.at(-1)!.id, "done");
  const ofFile = () => timers.map(({ ms }) => ms);
  expect([sent, ofFile()]).toEqual([2, [40_000, 5_000]]); // two requests for the file, each followed by one timer
  timers[0]!.run();
  await soon(() => expect(timers).toHaveLength(3));
  expect([sent, ofFile().at(-1)]).toEqual([3, 10_000]);
  await until(harness, "f", "needs-server");
});

/** Send a file that the server embeds, and wait until its task has the stage. */
async function sendAndFollow(stage = "embedding") {
  const document = { id: "f", chunkCount: 3, status: "pending", createdAt: T };
  const base = await answering((_, response) => response.end(JSON.stringify({ document, existing: false })));
  const harness = openUploads(records, { base });
  harness.hear("live");
  harness.files.rows.set("f", waiting("f", TEXT));
  void harness.uploads.resume();
  await until(harness, "f", stage);
  return harness;
}

test("an upload ends as canceled if its document was deleted here", async () => {
  await insert(records, "documents", { id: "f" });
  await (await records.documents.findOne("f").exec())!.remove();
  const harness = await sendAndFollow("cancelled");
  expect(harness.task("f")!.documentId).toBeNull();
});

test("forget everything cancels an upload that the server is embedding", async () => {
  const harness = await sendAndFollow();
  harness.context.account$.next({ ...harness.context.account, forgottenAt: LATER });
  await until(harness, "f", "cancelled");
});

test("an upload that the server is embedding ends when its row is ready", async () => {
  const harness = await sendAndFollow();
  harness.sync.serverEmbedding$.next({ f: { done: 2, of: 3 } });
  expect(harness.task("f")).toMatchObject({ done: 2, of: 3 });
  await insert(records, "documents", { id: "f", status: "ready" });
  await until(harness, "f", "done");
});
