/**
 * Run the app's upload queue in a test, with the real database and the real parser of text files. Fakes replace APIs
 * that Node.js lacks: locks, IndexedDB, workers and XMLHttpRequest.
 */

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { DeviceDatabase, DeviceAccount, WaitingFile } from "../../web/src/storage/deviceDatabase.ts";
import type { Message } from "../../web/src/parsers/workerMessages.ts";
import type { AccountDatabase } from "../../web/src/storage/accountDatabase.ts";
import type { Manifest } from "../../web/src/core/schema/modelManifest.ts";
import type { Task } from "../../web/src/core/documents/uploadTask.ts";
import { EmbeddingModel } from "../../web/src/backend/library/embeddingModel.ts";
import { AccountContext } from "../../web/src/backend/account/accountContext.ts";
import { ensureSession } from "../../web/src/backend/chat/sessions.ts";
import { TabCoordinator, type SyncSummary } from "../../web/src/backend/sync/tabCoordinator.ts";
import { UploadQueue } from "../../web/src/backend/uploads/uploadQueue.ts";
import { insert, openRows, T } from "./device.ts";
import { soon } from "../soon.ts";

export const TEXT = "The ferry leaves the harbour at noon and returns in the evening.";
export const LATER = "2026-06-01T00:00:00.000Z";

/** The database of the current test. */
export let records: AccountDatabase;

/** Set up a test file that uses uploads. */
export function withUploads(): void {
  beforeAll(withBrowserParts);
  beforeEach(async () => void (records = await openRows()));
}

export async function texts(documentId: string): Promise<string> {
  const blocks = await records.vectorEmbeddings.find({ selector: { documentId } }).exec();
  return blocks.flatMap(({ chunks }) => chunks.map(({ text }) => text)).join();
}

export async function documents(): Promise<string[]> {
  return (await records.documents.find().exec()).map(({ id }) => id).sort();
}

export const until = (harness: UploadHarness, id: string, stage: string): Promise<void> =>
  soon(() => expect(harness.task(id)?.stage).toBe(stage));

/** A fake of Dexie's table of waiting files. */
export class Files {
  readonly rows = new Map<string, WaitingFile>();
  get = async (id: string) => this.rows.get(id);
  put = async (file: WaitingFile) => void this.rows.set(file.id, file);
  delete = async (id: string) => void this.rows.delete(id);
  where = () => ({ toArray: async () => [...this.rows.values()] });
}

export interface UploadHarness {
  context: AccountContext;
  files: Files;
  sync: TabCoordinator;
  uploads: UploadQueue;
  /** Sets the sync status. */
  hear(kind: SyncSummary["kind"]): void;
  task(id: string): Task | undefined;
}

export interface Setting {
  /** The address of the server. Default: one that refuses connections. */
  base?: string;
  /** The server's model as the device last received it. */
  model?: Manifest & { id: string };
}

export function openUploads(
  records: AccountDatabase,
  { base = "http://127.0.0.1:1", model }: Setting = {},
): UploadHarness {
  const files = new Files();
  const limits = { fileBytes: 2 ** 20, searchesDocuments: true };
  const account = { userId: "u", limits, ...(model ? { model } : {}) } as DeviceAccount;
  const watchFiles = (_: string, listener: (ids: string[]) => void) => listener([...files.rows.keys()]);
  const accounts = { get: async () => account, update: async () => 0 };
  const later = { where: () => ({ first: async () => undefined, toArray: async () => [] }) };
  const asked = { put: async () => {}, delete: async () => {} };
  const device = { accounts, files, later, asked, watchFiles } as unknown as DeviceDatabase;
  const context = new AccountContext(account, records, device, { base });
  const sync = new TabCoordinator(context);
  onTestFinished(() => sync.stop());
  onTestFinished(() => locks.clear());
  const begin = (id: string) => ensureSession(context, id, "");
  const uploads = new UploadQueue(context, sync, new EmbeddingModel(context), begin);
  const hear = (kind: SyncSummary["kind"]) => sync.summary$.next({ ...sync.summary$.value, kind });
  return { context, files, sync, uploads, hear, task: (id) => uploads.tasks$.value.find((t) => t.id === id) };
}

/** Return a file that an earlier page added. */
export function waiting(id: string, content: BlobPart, more: Partial<WaitingFile> = {}): WaitingFile {
  const blob = new Blob([content]);
  return { id, userId: "u", sessionId: null, name: `${id}.txt`, content: blob, addedAt: T, ...more };
}

/** Start an HTTP server with this listener, which stops after the test. Return its address. */
export async function answering(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => (server.closeAllConnections(), void server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Work = (lock: object | null) => unknown;

/** The held locks by name. They are released at the end of a test, when its tabs close. */
const locks = new Map<string, Promise<unknown>>();

/** A fake of navigator.locks.request: as in a browser, a lock has one holder at a time, also within one tab. */
async function request(name: string, ...given: [Work] | [LockOptions, Work]): Promise<unknown> {
  const [options, work] = given.length === 2 ? given : [{}, given[0]];
  if (options.ifAvailable && locks.has(name)) return work(null);
  while (locks.has(name)) await locks.get(name)!.catch(() => {});
  const working = Promise.resolve({}).then(work); // start asynchronously, as a browser does
  locks.set(name, working);
  try {
    return await working;
  } finally {
    if (locks.get(name) === working) locks.delete(name);
  }
}

export async function withBrowserParts(): Promise<void> {
  vi.stubGlobal("navigator", { locks: { request } });
  vi.stubGlobal("XMLHttpRequest", FakeXMLHttpRequest);
  const listeners: ((event: { data: unknown }) => void)[] = [];
  const readers: SameThread[] = [];
  vi.stubGlobal("self", {
    addEventListener: (_: string, listener: (event: { data: unknown }) => void) => listeners.push(listener),
    postMessage: (data: Message) => {
      const [reader] = data.kind === "progress" ? readers : readers.splice(0, 1);
      reader?.dispatchEvent(new MessageEvent("message", { data }));
    },
  });
  /** A fake Worker that runs the parser on the test's thread, one file at a time. Any other worker fails to start. */
  class SameThread extends EventTarget {
    readonly #reads: boolean;
    constructor(url: URL) {
      super();
      this.#reads = url.pathname.endsWith("/parsers/worker.ts");
    }
    postMessage(data: unknown): void {
      if (!this.#reads) return void queueMicrotask(() => this.dispatchEvent(new Event("error")));
      readers.push(this);
      listeners.forEach((listener) => listener({ data }));
    }
    terminate(): void {}
  }
  vi.stubGlobal("Worker", SameThread);
  await import("../../web/src/parsers/worker.ts");
}

/** A fake XMLHttpRequest with the members that uploads use, based on fetch. */
class FakeXMLHttpRequest {
  upload: { onprogress?: (event: { loaded: number }) => void } = {};
  status = 0;
  response: unknown = null;
  onload?: () => void;
  onerror?: () => void;
  onabort?: () => void;
  onloadend?: () => void;
  readonly #aborting = new AbortController();
  readonly #headers = new Headers();
  #answered = new Headers();
  #to = ["", ""] as [string, string];

  open(method: string, url: string): void {
    this.#to = [method, url];
  }
  setRequestHeader(name: string, value: string): void {
    this.#headers.set(name, value);
  }
  getResponseHeader(name: string): string | null {
    return this.#answered.get(name);
  }
  abort(): void {
    this.#aborting.abort();
    this.onabort?.();
  }
  send(body: FormData): void {
    const [method, url] = this.#to;
    fetch(url, { method, body, headers: this.#headers, signal: this.#aborting.signal })
      .then(async (answer) => {
        this.status = answer.status;
        this.#answered = answer.headers;
        this.response = await answer.json().catch(() => null);
        this.onload?.();
      })
      .catch(() => this.#aborting.signal.aborted || this.onerror?.())
      .finally(() => this.onloadend?.());
  }
}

/** A model whose files cannot be downloaded. */
export const MODEL = {
  id: "m",
  hash: "h",
  dims: 2,
  files: [{ name: "m.onnx", bytes: 1, sha256: "0" }],
} as any;

/** Insert documents whose embedding was interrupted when their page closed. */
export async function insertBrokenOff(...ids: string[]): Promise<void> {
  for (const id of ids) {
    await insert(records, "documents", { id, status: "pending" });
    await insert(records, "vectorEmbeddings", { id: `${id}.0`, documentId: id, block: 0 });
  }
}

/** Start a server that responds only after `release` is called. */
export async function slowModels() {
  let requestCount = 0;
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const base = await answering((_, response) => {
    requestCount++;
    void released.then(() => response.end("{}"));
  });
  return { base, release, asked: () => requestCount };
}
