/**
 * Extract the text of a file on this device. Each file is parsed in its own worker, so a parser that hangs, crashes or
 * runs out of memory does not affect other files.
 */

import type { Message, Request } from "./workerMessages.ts";
import { LIMITS, Unreadable, type Parsed, type Progress } from "./result.ts";

export { throwNotLoaded, Unreadable, type Parsed } from "./result.ts";

interface ParseOptions {
  signal?: AbortSignal;
  /** Callback that is called when parsing starts and, for a PDF, after each page. */
  onProgress?: Progress;
  /** Time limit in seconds. */
  seconds?: number;
}

/**
 * Parse a file. The buffer `bytes` is transferred to the worker and is empty afterwards. The promise rejects with
 * Unreadable, or with the signal's reason.
 */
export async function parseInWorker(
  name: string,
  bytes: ArrayBuffer,
  options: ParseOptions = {},
): Promise<Parsed> {
  const { signal, onProgress, seconds = LIMITS.seconds } = options;
  signal?.throwIfAborted();
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const { promise, resolve, reject } = withResolvers<Parsed>();
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener("abort", onAbort);
  const timer = setTimeout(() => reject(new Unreadable("PARSE_TIMEOUT")), seconds * 1000);
  let started = false;
  worker.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    started = true;
    if (data.kind === "progress") onProgress?.(data.stage, data.done, data.total);
    else if (data.kind === "parsed") resolve(data.parsed);
    else if (data.kind === "failed") reject(new Unreadable(data.code)); // other kinds are messages of pdf.js
  });
  // An error before the first message means that the worker could not be loaded. A later error means that it crashed,
  // usually because memory was exhausted.
  worker.addEventListener("error", () => reject(new Unreadable(started ? "PARSE_MEMORY" : "NEEDS_SERVER")));
  try {
    worker.postMessage({ name, bytes } satisfies Request, [bytes]);
    return await promise;
  } finally {
    worker.terminate();
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Replace Promise.withResolvers, which is missing in browsers from 2023. */
function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}
