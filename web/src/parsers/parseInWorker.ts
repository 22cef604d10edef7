/**
 * Text out of a file, read on this device. Each file has a worker of its own, which ends with it: a file that hangs,
 * crashes or eats all memory costs that one file.
 */

import type { Message, Request } from "./workerMessages.ts";
import { LIMITS, Unreadable, type Progress, type Read } from "./result.ts";

export { unloaded, Unreadable, type Read } from "./result.ts";

interface ReadOptions {
  signal?: AbortSignal;
  /** Hears of the pages that were read, where the kind has pages. */
  onProgress?: Progress;
  /** How long a file may take. */
  seconds?: number;
}

/** Takes the bytes over: afterwards the buffer is empty. Rejects with Unreadable, or with the signal's reason. */
export async function read(name: string, bytes: ArrayBuffer, options: ReadOptions = {}): Promise<Read> {
  const { signal, onProgress, seconds = LIMITS.seconds } = options;
  signal?.throwIfAborted();
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const { promise, resolve, reject } = withResolvers<Read>();
  const stop = () => reject(signal?.reason);
  signal?.addEventListener("abort", stop);
  const timer = setTimeout(() => reject(new Unreadable("PARSE_TIMEOUT")), seconds * 1000);
  let started = false;
  worker.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    started = true;
    if (data.kind === "progress") onProgress?.(data.stage, data.done, data.total);
    else if (data.kind === "read") resolve(data.read);
    else if (data.kind === "refused") reject(new Unreadable(data.code)); // pdf.js says something else, once
  });
  // It could not be loaded; or it died without a word, as for want of memory.
  worker.addEventListener("error", () => reject(new Unreadable(started ? "PARSE_MEMORY" : "NEEDS_SERVER")));
  try {
    worker.postMessage({ name, bytes } satisfies Request, [bytes]);
    return await promise;
  } finally {
    worker.terminate();
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** Promise.withResolvers, which phones of 2023 lack. */
function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}
