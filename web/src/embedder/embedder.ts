/** The embedding model in the browser. It gives the same vectors as the server, and is downloaded only from the server. */

import { isDownloaded } from "./modelFiles.ts";
import type { Manifest, Message, Method, Methods, OpenOptions, Progress, Request } from "./workerMessages.ts";
import { PriorityQueue } from "./priorityQueue.ts";

export { isDownloaded } from "./modelFiles.ts";
export type { Manifest, Progress } from "./workerMessages.ts";

type Vector = Float32Array<ArrayBuffer>;

export interface Options {
  base?: string;
  threads?: number;
  /**
   * Callback for the progress of the download. An interrupted download is continued. The callback is not called if the
   * model is on this device.
   */
  onProgress?: (progress: Progress) => void;
  /** Signal that cancels the download. The downloaded part is kept. */
  signal?: AbortSignal;
}

export interface Embedder {
  readonly manifest: Manifest;
  /** Return the vectors of the texts in order, as one array of n × dims numbers. */
  passages(texts: readonly string[], signal?: AbortSignal): Promise<Vector>;
  /** Return the vector of a question. The question is embedded before all waiting passages. */
  query(text: string, signal?: AbortSignal): Promise<Vector>;
  /** Return the number of tokens of each text, without prefix, [CLS], [SEP] and truncation. */
  countTokens(texts: readonly string[]): Promise<number[]>;
  /** Return the input ids for the model, including the prefix of the text. */
  tokens(text: string): Promise<number[]>;
  /** Terminate the worker. Pending calls are rejected. */
  close(): void;
}

/** Download the model, unless it is on this device. */
export async function fetchModel(manifest: Manifest, options: Options = {}): Promise<void> {
  if (await isDownloaded(manifest, options.base ?? "")) return;
  (await startWorker("fetch", manifest, options)).close();
}

/** Download the model, unless it is on this device, and start it. */
export async function open(manifest: Manifest, options: Options = {}): Promise<Embedder> {
  return embedder(manifest, await startWorker("open", manifest, options));
}

/** Return a worker that has downloaded or opened the model. */
async function startWorker(
  method: "fetch" | "open",
  manifest: Manifest,
  options: Options,
): Promise<EmbedderWorker> {
  const { base = "", threads = 0, onProgress = () => {}, signal } = options;
  signal?.throwIfAborted();
  const worker = new EmbedderWorker(onProgress);
  const onAbort = () => worker.close(signal?.reason);
  signal?.addEventListener("abort", onAbort);
  try {
    await worker.call(method, { manifest, base, threads } satisfies OpenOptions);
    return worker;
  } catch (error) {
    worker.close();
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function embedder(manifest: Manifest, worker: EmbedderWorker): Embedder {
  const queue = new PriorityQueue((text) => worker.call("embed", text));
  const { prefixes, dims } = manifest;
  return {
    manifest,
    passages: async (texts, signal) => {
      const vectors = await Promise.all(texts.map((text) => queue.passage(prefixes.passage + text, signal)));
      return concatenate(vectors, dims);
    },
    query: (text, signal) => queue.question(prefixes.query + text, signal),
    countTokens: (texts) => worker.call("count", [...texts]),
    tokens: (text) => worker.call("tokens", text),
    close: () => worker.close(),
  };
}

function concatenate(vectors: readonly Vector[], dims: number): Vector {
  const all = new Float32Array(vectors.length * dims);
  vectors.forEach((vector, n) => all.set(vector, n * dims));
  return all;
}

interface PendingCall {
  resolve: (output: any) => void;
  reject: (reason: unknown) => void;
}

/** Calls methods of the worker. */
class EmbedderWorker {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  readonly #pending = new Map<number, PendingCall>();
  #lastId = 0;
  #closeReason: unknown;

  constructor(onProgress: (progress: Progress) => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<Message>) => {
      if (data.kind === "progress") return onProgress(data.progress);
      const call = this.#pending.get(data.id);
      this.#pending.delete(data.id);
      if (data.kind === "output") call?.resolve(data.output);
      else call?.reject(new Error(data.message));
    });
    // This event means that the worker could not be loaded, or that it ran out of memory.
    this.#worker.addEventListener("error", (event) =>
      this.close(new Error(`The embedder failed: ${event.message}`)),
    );
  }

  call<M extends Method>(method: M, input: Methods[M]["input"]): Promise<Methods[M]["output"]> {
    if (this.#closeReason) return Promise.reject(this.#closeReason);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, input } as Request);
    });
  }

  close(reason: unknown = new Error("The embedder is closed.")): void {
    this.#closeReason ??= reason;
    this.#worker.terminate();
    for (const { reject } of this.#pending.values()) reject(this.#closeReason);
    this.#pending.clear();
  }
}
