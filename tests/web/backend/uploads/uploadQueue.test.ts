/** Turn files into documents on a device: neither a closed page nor a failure loses data. */

import { deleteDocuments, deleteSession } from "../../../../web/src/backend/deletion/deletion.ts";
import { mayRetry } from "../../../../web/src/core/documents/uploadTask.ts";
import { EmbeddingModel } from "../../../../web/src/backend/library/embeddingModel.ts";
import { stageLabel } from "../../../../web/src/ui/documents/uploadText.ts";
import { insert, stored, T } from "../../device.ts";
import {
  answering,
  documents,
  insertBrokenOff,
  LATER,
  MODEL,
  openUploads,
  records,
  slowModels,
  TEXT,
  texts,
  until,
  waiting,
  withUploads,
} from "../../uploads.ts";
import { soon } from "../../../soon.ts";

const FAR = "9999-01-01T00:00:00.000Z";

withUploads();

/** Wait until released work has been processed. */
const settle = async () => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
};

test("closing the page before a file's text is stored loses no file", async () => {
  // Produce the rows that a page has written when it closes before the text is stored.
  const first = openUploads(records);
  await first.uploads.add([new File([TEXT], "ferry.txt")], "s1");
  const { id } = first.uploads.tasks$.value[0]!;
  const file = first.files.rows.get(id)!;
  await until(first, id, "done");
  for (const block of await records.vectorEmbeddings.find().exec()) await block.remove();
  await (await records.documents.findOne(id).exec())!.incrementalPatch({ status: "pending" });

  const second = openUploads(records);
  second.files.rows.set(id, file);
  void second.uploads.resume();
  await until(second, id, "done");
  expect(await texts(id)).toBe(TEXT);
  expect(await documents()).toEqual([id]);
  expect(second.task(id)).not.toMatchObject({ existing: true });
  expect(second.files.rows.size).toBe(0);
});

test("an upload that fails on a full disk keeps its file for retry", async () => {
  await insert(records, "documents", { id: "f", status: "pending" });
  const harness = openUploads(records);
  harness.files.rows.set("f", waiting("f", TEXT));
  const full = vi.spyOn(records.vectorEmbeddings, "bulkInsert");
  full.mockRejectedValueOnce(new DOMException("No room.", "QuotaExceededError"));
  void harness.uploads.resume();
  await until(harness, "f", "failed");
  expect(harness.task("f")).toMatchObject({ code: "QUOTA_KEPT", documentId: null });
  expect(mayRetry(harness.task("f")!)).toBe(true);
  expect(stageLabel(harness.task("f")!)).toContain("is kept on this device");
  expect([...harness.files.rows.keys()]).toEqual(["f"]);
  await harness.uploads.retry("f");
  await until(harness, "f", "done");
  expect(await texts("f")).toBe(TEXT);
});

test("a concurrently synced document is not overwritten", async () => {
  const storage = records.documents.storageInstance;
  const write = storage.bulkWrite.bind(storage);
  const late = vi.spyOn(storage, "bulkWrite").mockImplementationOnce(async (rows, context) => {
    const { id } = rows[0]!.document;
    late.mockRestore();
    await insert(records, "documents", { id, status: "ready", filename: "by the server" });
    await insert(records, "vectorEmbeddings", { id: `${id}.0`, documentId: id, block: 0 });
    return write(rows, context);
  });
  const harness = openUploads(records);
  await harness.uploads.add([new File([TEXT], "ferry.txt")], null);
  const { id } = harness.uploads.tasks$.value[0]!;
  await until(harness, id, "done");
  expect(await stored(records, "documents", id)).toMatchObject({
    status: "ready",
    filename: "by the server",
  });
  expect(await texts(id)).toBe("a secret");
});

test("re-adding a file restores its document's missing text", async () => {
  const harness = openUploads(records);
  await harness.uploads.add([new File([TEXT], "ferry.txt")], null);
  const { id } = harness.uploads.tasks$.value[0]!;
  await until(harness, id, "done");
  for (const block of await records.vectorEmbeddings.find().exec()) await block.remove();
  const row = (await records.documents.findOne(id).exec())!;
  await row.incrementalPatch({ status: "pending", filename: "renamed.txt", activeSessions: ["s1"] });
  await harness.uploads.add([new File([TEXT], "ferry.txt")], "s2");
  await until(harness, harness.uploads.tasks$.value[1]!.id, "done");
  expect(await texts(id)).toBe(TEXT);
  expect(await stored(records, "documents", id)).toMatchObject({
    filename: "renamed.txt",
    activeSessions: ["s1", "s2"],
  });
  expect(await documents()).toEqual([id]);
});

test("a document embedded in another tab does not block later documents", async () => {
  await insertBrokenOff("a", "b");
  void navigator.locks.request("vademecum-file-a", () => new Promise(() => {}));
  const harness = openUploads(records);
  harness.uploads.retryEmbedding("a");
  harness.uploads.retryEmbedding("b");
  await until(harness, "b", "done");
  expect(harness.task("a")).toBeUndefined();
});

test("a failed upload is not retried after forget everything", async () => {
  const harness = openUploads(records);
  harness.files.put = async () => Promise.reject(new DOMException("No room.", "QuotaExceededError"));
  await harness.uploads.add([new File([TEXT], "ferry.txt")], null);
  const { id } = harness.uploads.tasks$.value[0]!;
  expect(harness.task(id)).toMatchObject({ stage: "failed", code: "QUOTA" });
  harness.context.account$.next({ ...harness.context.account, forgottenAt: FAR });
  await until(harness, id, "cancelled");
  harness.files.put = async (file) => void harness.files.rows.set(file.id, file);
  await harness.uploads.retry(id);
  expect(harness.files.rows.size).toBe(0);
});

test("canceling resumed embedding keeps the document", async () => {
  await insertBrokenOff("a");
  const { base, release } = await slowModels();
  const harness = openUploads(records, { base, model: MODEL });
  void harness.uploads.resume();
  harness.hear("offline");
  await until(harness, "a", "embedding");
  await harness.uploads.cancel("a");
  expect(harness.task("a")).toMatchObject({ stage: "cancelled", documentId: "a" });
  harness.uploads.retryEmbedding("a");
  release();
  await until(harness, "a", "done"); // runs after all work that canceling started
  expect(await documents()).toEqual(["a"]);
  expect(await texts("a")).toBe("a secret");
});

test("canceling a new upload deletes its document", async () => {
  const { base, release } = await slowModels();
  const harness = openUploads(records, { base, model: MODEL });
  await harness.uploads.add([new File([TEXT], "ferry.txt")], null);
  const { id } = harness.uploads.tasks$.value[0]!;
  await until(harness, id, "embedding");
  await harness.uploads.cancel(id);
  release();
  await soon(async () => expect(await documents()).toEqual([]));
  expect(harness.task(id)).toMatchObject({ stage: "cancelled", documentId: null });
  expect(await texts(id)).toBe("");
});

test("cancelWaiting cancels waiting files, not the active one", async () => {
  const { base, release } = await slowModels();
  const harness = openUploads(records, { base, model: MODEL });
  const put = harness.files.put;
  let slow = (_: unknown) => {};
  harness.files.put = async (file) => {
    if (file.name === "4.txt") await new Promise((resolve) => (slow = resolve));
    await put(file);
  };
  const names = ["0", "1", "2", "3", "4", "5", "6"];
  const adding = harness.uploads.add(
    names.map((name) => new File([TEXT + name], `${name}.txt`)),
    null,
  );
  await soon(() => expect(harness.uploads.tasks$.value.map(({ stage }) => stage)[0]).toBe("embedding"));
  await soon(() => expect(harness.uploads.tasks$.value.length).toBe(4));
  const cancelled = harness.uploads.cancelWaiting();
  const late = harness.uploads.add([new File([`${TEXT} late`], "late.txt")], null);
  await settle();
  slow(0);
  await Promise.all([cancelled, adding, late]);
  release();
  const [chosenLate] = harness.uploads.tasks$.value.filter(({ name }) => name === "late.txt");
  const tasks = harness.uploads.tasks$.value.filter((task) => task !== chosenLate);
  // A file that was not a task yet when it was canceled never becomes one.
  expect(tasks.map(({ name }) => name)).not.toContain("5.txt");
  await until(harness, tasks[0]!.id, "done");
  const others = tasks.slice(1).map(({ id }) => harness.task(id)?.stage);
  expect(others).toEqual(Array(4).fill("cancelled"));
  await until(harness, chosenLate!.id, "done"); // cancelWaiting does not cancel files that are chosen later
  await soon(async () => expect(await documents()).toEqual([tasks[0]!.id, chosenLate!.id].sort()));
  expect(harness.files.rows.size).toBe(0);
});

test("retryAll retries only retryable failures", async () => {
  const harness = openUploads(records);
  const put = harness.files.put;
  harness.files.put = async () => Promise.reject(new DOMException("No room.", "QuotaExceededError"));
  await harness.uploads.add([new File([TEXT], "a.txt"), new File([`${TEXT} Twice.`], "b.txt")], null);
  harness.files.put = put;
  await harness.uploads.add([new File([""], "empty.txt")], null);
  const [a, b, empty] = harness.uploads.tasks$.value.map(({ id }) => id) as [string, string, string];
  await until(harness, empty, "failed");
  await harness.uploads.retryAll();
  await soon(async () => expect(await documents()).toEqual([a, b].sort()));
  expect(harness.task(empty)).toMatchObject({ stage: "failed", code: "EMPTY" });
});

test("canceling an upload while counting tokens or writing leaves no text", async () => {
  let count = (_: number[]) => {};
  const countTokens = () => new Promise<number[]>((resolve) => (count = resolve));
  const ifHere = vi
    .spyOn(EmbeddingModel.prototype, "embedderIfDownloaded")
    .mockResolvedValue({ countTokens } as any);
  onTestFinished(() => ifHere.mockRestore());
  const harness = openUploads(records);
  const [counted, written] = ["counted", "written"] as const;
  await insert(records, "documents", { id: written, status: "pending" }); // left behind when the page was closed during an upload
  for (const id of [counted, written]) harness.files.rows.set(id, waiting(id, `${TEXT} ${id}`));
  void harness.uploads.resume();
  await soon(() => expect(ifHere).toHaveBeenCalledTimes(1));
  await settle();
  await harness.uploads.cancel(counted);
  count([1]);
  await soon(() => expect(ifHere).toHaveBeenCalledTimes(2));
  await settle();
  expect(await stored(records, "documents", counted).catch(() => null)).toBeNull(); // not even a tombstone
  const write = records.vectorEmbeddings.bulkInsert.bind(records.vectorEmbeddings);
  let isWritten = false;
  vi.spyOn(records.vectorEmbeddings, "bulkInsert").mockImplementation(async (rows) => {
    await harness.uploads.cancel(written);
    await soon(async () => expect(await documents()).toEqual([]));
    return write(rows).finally(() => (isWritten = true));
  });
  count([1]);
  await soon(() => expect(isWritten).toBe(true));
  await soon(async () => expect(await texts(written)).toBe(""));
  expect(await texts(counted)).toBe("");
  expect(await documents()).toEqual([]);
  for (const id of [counted, written]) expect(harness.task(id)!.stage).toBe("cancelled");
});

test("re-adding a file offline retries its failed document", async () => {
  const harness = openUploads(records);
  await harness.uploads.add([new File([TEXT], "ferry.txt")], null);
  const { id } = harness.uploads.tasks$.value[0]!;
  await until(harness, id, "done");
  for (const block of await records.vectorEmbeddings.find().exec()) await block.remove();
  const row = (await records.documents.findOne(id).exec())!;
  await row.incrementalPatch({ status: "failed", statusDetail: "A part of it could not be embedded." });
  await harness.uploads.add([new File([TEXT], "ferry.txt")], null);
  const again = harness.uploads.tasks$.value[1]!.id;
  await until(harness, again, "done");
  expect(harness.task(again)!.documentId).toBe(id);
  expect(harness.task(again)).not.toMatchObject({ existing: true });
  expect(await texts(id)).toBe(TEXT);
  const document = await stored(records, "documents", id);
  expect(document["status"]).toBe("ready");
  expect(document["statusDetail"]).toBeUndefined();
});

test("an upload whose document is deleted while embedding ends as canceled", async () => {
  await insertBrokenOff("a");
  const { base, release } = await slowModels();
  const harness = openUploads(records, { base, model: MODEL });
  void harness.uploads.resume();
  harness.hear("offline");
  await until(harness, "a", "embedding");
  await deleteDocuments(harness.context, ["a"]);
  release();
  await until(harness, "a", "cancelled");
  expect(harness.task("a")!.documentId).toBeNull();
});

test("retrying embedding after the database closed logs no error", async () => {
  await insert(records, "documents", { id: "d", status: "pending" });
  const harness = openUploads(records);
  const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => complaints.mockRestore());
  await records.close();
  harness.uploads.retryEmbedding("d");
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(complaints).not.toHaveBeenCalled();
});

test("a file added before forget everything keeps its creation time", async () => {
  const harness = openUploads(records);
  harness.files.rows.set("f", waiting("f", TEXT));
  harness.context.account$.next({ ...harness.context.account, forgottenAt: LATER });
  void harness.uploads.resume();
  await until(harness, "f", "done");
  for (const [name, id] of [
    ["documents", "f"],
    ["vectorEmbeddings", "f.0"],
  ] as const) {
    expect((await stored(records, name, id))["createdAt"]).toBe(T);
  }
});

test("failing to remove one file does not stop the next upload", async () => {
  const harness = openUploads(records);
  const remove = harness.files.delete;
  harness.files.delete = (id) => (id === "bad" ? Promise.reject(new Error("The disk is gone.")) : remove(id));
  const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
  harness.files.rows.set("bad", waiting("bad", "")); // an upload without text fails, so its file is removed
  harness.files.rows.set("good", waiting("good", TEXT));
  void harness.uploads.resume();
  await until(harness, "good", "done");
  expect(harness.task("bad")).toMatchObject({ stage: "failed", code: "EMPTY" });
  expect(complaints).toHaveBeenCalledOnce();
  complaints.mockRestore();
});

/** Start a server that rejects uploads because it lacks their chat. `first` runs before the response. */
async function serverWithoutChat(first: () => Promise<void>): Promise<string> {
  return answering((request, response) => {
    if (request.url !== "/v1/documents") return void response.writeHead(503).end();
    request.resume().on("end", () => void first().then(refuse));
    const refuse = () => response.writeHead(404).end('{"code": "NOT_FOUND", "detail": "There is none."}');
  });
}

test("an upload to a deleted chat becomes a document that no chat borrows", async () => {
  const base = await serverWithoutChat(async () => deleteSession(harness.context, "s1"));
  const harness = openUploads(records, { base });
  harness.hear("live");
  await harness.uploads.add([new File([TEXT], "ferry.txt")], "s1");
  const { id } = harness.uploads.tasks$.value[0]!;
  await until(harness, id, "done");
  expect(await stored(records, "documents", id)).toMatchObject({ originSessionId: "", activeSessions: [] });
  expect(await texts(id)).toBe(TEXT);
  expect(await stored(records, "sessions", "s1")).toMatchObject({ _deleted: true }); // the chat is not created again
});

test("an uploaded document stays borrowed by a chat the server lacks", async () => {
  const harness = openUploads(records, { base: await serverWithoutChat(async () => {}) });
  harness.hear("live");
  await harness.uploads.add([new File([TEXT], "ferry.txt")], "s1");
  const { id } = harness.uploads.tasks$.value[0]!;
  await until(harness, id, "done");
  expect(await stored(records, "documents", id)).toMatchObject({ activeSessions: ["s1"] });
});
