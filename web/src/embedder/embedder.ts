/** The model in the browser: text in, the server's vectors out. It runs in a worker and asks nobody but the server. */

import { isHere } from "./modelFiles.ts";
import type { Manifest, Message, Opening, Progress, Request, Verb, Verbs } from "./workerMessages.ts";
import { Queue } from "./priorityQueue.ts";

export { isHere } from "./modelFiles.ts";
export type { Manifest, Progress } from "./workerMessages.ts";

type Vector = Float32Array<ArrayBuffer>;

export interface Options {
  base?: string;
  threads?: number;
  /** Hears of the download, which goes on from what was here already. Where all was here, it hears nothing. */
  onProgress?: (progress: Progress) => void;
  /** Ends it; what was downloaded stays. */
  signal?: AbortSignal;
}

export interface Embedder {
  readonly manifest: Manifest;
  /** One vector a text, n × dims, in order. Aborted, it leaves the queue. */
  passages(texts: readonly string[], signal?: AbortSignal): Promise<Vector>;
  /** The vector of a question, ahead of every passage that waits. */
  query(text: string, signal?: AbortSignal): Promise<Vector>;
  /** Tokens of each text alone: no prefix, no [CLS] and [SEP], not cut. */
  countTokens(texts: readonly string[]): Promise<number[]>;
  /** The ids that the model is given for a text, prefix and all. */
  tokens(text: string): Promise<number[]>;
  /** Ends the worker. Whoever still waits gets an error. */
  close(): void;
}

/** Downloads the model, unless it is here, and starts nothing. */
export async function fetchModel(manifest: Manifest, options: Options = {}): Promise<void> {
  if (await isHere(manifest, options.base ?? "")) return;
  (await remotely("fetch", manifest, options)).close();
}

/** Downloads the model, unless it is here, and starts it. */
export async function open(manifest: Manifest, options: Options = {}): Promise<Embedder> {
  return embedder(manifest, await remotely("open", manifest, options));
}

/** A worker that has done so. */
async function remotely(verb: "fetch" | "open", manifest: Manifest, options: Options): Promise<Remote> {
  const { base = "", threads = 0, onProgress = () => {}, signal } = options;
  signal?.throwIfAborted();
  const remote = new Remote(onProgress);
  const stop = () => remote.close(signal?.reason);
  signal?.addEventListener("abort", stop);
  try {
    await remote.ask(verb, { manifest, base, threads } satisfies Opening);
    return remote;
  } catch (error) {
    remote.close();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

function embedder(manifest: Manifest, remote: Remote): Embedder {
  const queue = new Queue((text) => remote.ask("embed", text));
  const { prefixes, dims } = manifest;
  return {
    manifest,
    passages: async (texts, signal) => {
      const vectors = await Promise.all(texts.map((text) => queue.passage(prefixes.passage + text, signal)));
      return joined(vectors, dims);
    },
    query: (text, signal) => queue.question(prefixes.query + text, signal),
    countTokens: (texts) => remote.ask("count", [...texts]),
    tokens: (text) => remote.ask("tokens", text),
    close: () => remote.close(),
  };
}

function joined(vectors: readonly Vector[], dims: number): Vector {
  const all = new Float32Array(vectors.length * dims);
  vectors.forEach((vector, n) => all.set(vector, n * dims));
  return all;
}

interface Waiting {
  resolve: (answer: any) => void;
  reject: (reason: unknown) => void;
}

/** The worker as a function that is called and answers. */
class Remote {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #closed: unknown;

  constructor(onProgress: (progress: Progress) => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<Message>) => {
      if (data.kind === "progress") return onProgress(data.progress);
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.kind === "answer") waiting?.resolve(data.answer);
      else waiting?.reject(new Error(data.message));
    });
    // A worker that cannot be loaded, or ran out of memory, answers nothing more.
    this.#worker.addEventListener("error", (event) =>
      this.close(new Error(`The embedder failed: ${event.message}`)),
    );
  }

  ask<V extends Verb>(verb: V, given: Verbs[V]["given"]): Promise<Verbs[V]["answer"]> {
    if (this.#closed) return Promise.reject(this.#closed);
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, verb, given } as Request);
    });
  }

  close(reason: unknown = new Error("The embedder is closed.")): void {
    this.#closed ??= reason;
    this.#worker.terminate();
    for (const { reject } of this.#waiting.values()) reject(this.#closed);
    this.#waiting.clear();
  }
}
