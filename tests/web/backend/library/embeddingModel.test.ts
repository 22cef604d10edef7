/** The embedding model on a device: replacement, failures, and retries of its download. */

import { BehaviorSubject, NEVER, Subject } from "rxjs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { DeviceDatabase, DeviceAccount } from "../../../../web/src/storage/deviceDatabase.ts";
import { filesOf, folderOf, keysOf } from "../../../../web/src/embedder/modelFiles.ts";
import type { Request } from "../../../../web/src/embedder/workerMessages.ts";
import { EmbeddingModel, type ModelInfo } from "../../../../web/src/backend/library/embeddingModel.ts";
import type { SyncSummary } from "../../../../web/src/backend/sync/tabCoordinator.ts";
import { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { openRows } from "../../device.ts";
import { soon } from "../../../soon.ts";

const files = ["model.onnx", "tokenizer.json"].map((path) => ({ path, bytes: 1, sha256: "" }));
const model = (id: string) =>
  ({ id, hash: id, dims: 2, prefixes: { query: "", passage: "" }, files }) as unknown as ModelInfo;

/** Replaces the browser's Worker, which Node.js lacks. Its model starts when the test calls `answer`. */
class FakeWorker {
  static all: FakeWorker[] = [];
  terminated = false;
  #request: Request | undefined;
  #listener = (_: unknown): void => {};

  constructor() {
    FakeWorker.all.push(this);
  }

  addEventListener(name: string, listener: (event: unknown) => void): void {
    if (name === "message") this.#listener = listener;
  }

  postMessage(request: Request): void {
    this.#request = request;
  }

  terminate(): void {
    this.terminated = true;
  }

  answer(data: { kind: "output" } | { kind: "failure"; message: string }): void {
    if (!this.terminated) this.#listener({ data: { ...data, id: this.#request!.id } });
  }
}

let current: ModelInfo;
let server: Server;

beforeEach(async () => {
  FakeWorker.all = [];
  vi.stubGlobal("Worker", FakeWorker);
  server = createServer((_, response) =>
    response.end(JSON.stringify({ current: current.hash, models: [current] })),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(() => {
  vi.unstubAllGlobals();
  server.closeAllConnections();
  server.close();
});

/** Open an account. `known`: the server's model as the device last received it. */
async function openAccount(known?: ModelInfo) {
  const account = { userId: "u", ...(known ? { model: known } : {}) } as DeviceAccount;
  const accounts = { get: async () => account, update: async () => 0 };
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const context = new AccountContext(account, await openRows(), { accounts } as unknown as DeviceDatabase, {
    base,
  });
  return { account, context, base, embedding: new EmbeddingModel(context) };
}

const worker = (n: number) => soon(() => (expect(FakeWorker.all).toHaveLength(n), FakeWorker.all[n - 1]!));

/** Wait for a request to the server, so that a request which the app sent before has arrived, too. */
const tick = () => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);

/** Change the server's model while the device starts the first model, so that it starts the second. */
async function changeModelDuringStart() {
  const { account, context, embedding } = await openAccount();
  current = model("one");
  const before = embedding.embedder();
  await soon(() => expect(FakeWorker.all).toHaveLength(1));
  current = model("two");
  context.account$.next({ ...account, model: current });
  await soon(() => expect(FakeWorker.all).toHaveLength(2));
  const [first, second] = FakeWorker.all as [FakeWorker, FakeWorker];
  return { embedding, before, first, second };
}

test("a model replaced during its start is terminated without a state change", async () => {
  const { embedding, before, first, second } = await changeModelDuringStart();
  second.answer({ kind: "output" });
  expect((await embedding.embedder())?.manifest.hash).toBe("two");
  first.answer({ kind: "output" });
  expect(await before).toBeNull();
  expect(embedding.state$.value).toEqual({ kind: "ready", id: "two" });
  expect(FakeWorker.all.map(({ terminated }) => terminated)).toEqual([true, false]);
});

test("a replaced model's failed start does not affect the new model", async () => {
  const { embedding, before, first, second } = await changeModelDuringStart();
  first.answer({ kind: "failure", message: "No room." });
  await before;
  second.answer({ kind: "output" });
  expect((await embedding.embedder())?.manifest.hash).toBe("two");
  expect(embedding.state$.value).toEqual({ kind: "ready", id: "two" });
  expect(FakeWorker.all).toHaveLength(2);
});

test("a temporary storage error leaves the model usable", async () => {
  current = model("one");
  const { embedding } = await openAccount(current);
  vi.stubGlobal("caches", { open: () => Promise.reject(new Error("The storage is busy.")) });
  expect(await embedding.embedderIfDownloaded()).toBeNull();
  await embedding.download();
  expect(await embedding.embedder()).toBeNull();
  expect(embedding.state$.value).toEqual({ kind: "failed", message: "The storage is busy." });
  vi.stubGlobal("caches", undefined);
  const embedder = embedding.embedder();
  (await worker(1)).answer({ kind: "output" });
  expect((await embedder)?.manifest.hash).toBe("one");
});

/** Stub the browser's cache so that it contains all files of the model. */
function stubCache(cached: ModelInfo, base: string): void {
  vi.stubGlobal("location", { origin: base });
  const urls = filesOf(cached).flatMap((file) => keysOf(folderOf(cached, base) + file.path, file));
  vi.stubGlobal("caches", { open: async () => ({ keys: async () => urls.map((url) => ({ url })) }) });
}

/** Stop the timers that RxJS uses for its delays. */
function stopTimers(): void {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  onTestFinished(() => void vi.useRealTimers());
}

/** Stub the browser's cache with an empty one, which keeps what is put into it. */
function stubEmptyCache(base: string) {
  const entries = new Map<string, Response>();
  const cache = {
    keys: async () => [...entries.keys()].map((url) => ({ url })),
    match: async (url: string) => entries.get(url)?.clone(),
    put: async (url: string, response: Response) => void entries.set(url, response),
  };
  vi.stubGlobal("location", { origin: base });
  vi.stubGlobal("caches", { open: async () => cache });
  return cache;
}

test("a model is offered with its size and downloaded after consent", async () => {
  current = model("one");
  const { embedding, base } = await openAccount();
  stubEmptyCache(base);
  void embedding.download();
  const offered = { kind: "offered", bytes: 2, isDeclined: false };
  await soon(() => expect(embedding.state$.value).toEqual(offered));
  expect(await embedding.embedder()).toBeNull();
  expect(FakeWorker.all).toHaveLength(0);
  await embedding.acceptDownload();
  (await worker(1)).answer({ kind: "output" });
  await soon(() => expect(embedding.state$.value.kind).toBe("ready"));
});

test("consent given during a check for the model starts the download", async () => {
  current = model("one");
  const { embedding, base } = await openAccount();
  const cache = stubEmptyCache(base);
  let answer!: () => void;
  const read = new Promise<void>((reading) => {
    cache.match = () => (reading(), new Promise((resolve) => (answer = () => resolve(undefined))));
  });
  const check = embedding.download();
  await read;
  cache.match = async () => new Response("accepted");
  await embedding.acceptDownload();
  answer();
  await check;
  await worker(1);
});

test("a declined model is not offered again, but its successor is", async () => {
  current = model("one");
  const { account, context, base, embedding } = await openAccount();
  stubEmptyCache(base);
  await embedding.download();
  await embedding.declineDownload();
  const declined = { kind: "offered", bytes: 2, isDeclined: true };
  expect(embedding.state$.value).toEqual(declined);
  const reloaded = new EmbeddingModel(context);
  await reloaded.download();
  expect(reloaded.state$.value).toEqual(declined);
  current = model("two");
  context.account$.next({ ...account, model: current });
  await soon(() => expect(reloaded.state$.value).toEqual({ ...declined, isDeclined: false }));
  expect(FakeWorker.all).toHaveLength(0);
});

test("a decision applies to all tabs", async () => {
  current = model("one");
  const { context, base, embedding } = await openAccount();
  stubEmptyCache(base);
  const otherTab = new EmbeddingModel(context);
  stopTimers();
  const summary$ = new BehaviorSubject({ kind: "live" } as SyncSummary);
  otherTab.start({ summary$, isAway$: NEVER, reconnected$: new Subject() });
  vi.advanceTimersByTime(2_500); // the delay until the sync has settled
  await soon(() => expect(otherTab.state$.value).toMatchObject({ isDeclined: false }));
  await embedding.declineDownload();
  await soon(() => expect(otherTab.state$.value).toMatchObject({ isDeclined: true }));
});

test("a discarded model restarts on the next request", async () => {
  const { embedding, base } = await openAccount(model("one"));
  stubCache(model("one"), base);
  server.close(); // offline
  const first = embedding.embedderIfDownloaded();
  (await worker(1)).answer({ kind: "output" });
  const firstModel = (await first)!;
  embedding.discard(firstModel, new Error("Out of memory."));
  expect(FakeWorker.all[0]!.terminated).toBe(true);
  expect(embedding.state$.value).toEqual({ kind: "failed", message: "Out of memory." });
  const second = embedding.embedderIfDownloaded();
  (await worker(2)).answer({ kind: "output" });
  const next = await second;
  embedding.discard(firstModel, new Error("The embedder is closed.")); // a second caller reports the same crash
  expect(embedding.state$.value).toEqual({ kind: "ready", id: "one" });
  expect(await embedding.embedder()).toBe(next);
  expect(FakeWorker.all[1]!.terminated).toBe(false);
});

test("a failed model download is retried unless the disk is full", async () => {
  current = model("one");
  const { embedding } = await openAccount();
  const summary = (kind: SyncSummary["kind"]) => ({ kind }) as SyncSummary;
  const summary$ = new BehaviorSubject(summary("live"));
  const reconnected$ = new Subject<void>();
  stopTimers();
  const fail = async (n: number) => {
    const before = embedding.state$.value;
    (await worker(n)).answer({ kind: "failure", message: "It broke off." });
    await soon(() => expect(embedding.state$.value).not.toBe(before));
  };
  embedding.start({ summary$, isAway$: NEVER, reconnected$ });
  await worker(1);
  vi.advanceTimersByTime(2_500); // the delay until the sync has settled
  await fail(1);
  const failedAt = Date.now();
  reconnected$.next();
  await fail(2);
  expect(Date.now() - failedAt).toBeLessThan(4_000);
  vi.advanceTimersByTime(7_000);
  await tick();
  expect(FakeWorker.all).toHaveLength(2);
  vi.advanceTimersByTime(4_000);
  await fail(3);
  summary$.next(summary("full"));
  reconnected$.next();
  vi.advanceTimersByTime(60_000);
  await tick();
  expect(FakeWorker.all).toHaveLength(3);
  summary$.next(summary("live"));
  vi.advanceTimersByTime(2_500);
  (await worker(4)).answer({ kind: "output" });
  await soon(() => expect(embedding.state$.value.kind).toBe("ready"));
});
