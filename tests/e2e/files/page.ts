/** The reader alone, for a test to call. */

import { read, Unreadable, type Read } from "../../../web/src/parsers/parseInWorker.ts";
import { chunk, type Chunk } from "../../../web/src/core/documents/chunking.ts";

export interface Outcome {
  read?: Read;
  chunks?: Chunk[];
  code?: string;
}

export interface Asked {
  /** Where the server of the test has the file. */
  url: string;
  name: string;
  seconds?: number;
  /** Stop when so many pages are read. */
  stopAt?: number;
}

async function outcome({ url, name, seconds = 60, stopAt = Infinity }: Asked): Promise<Outcome> {
  const bytes = await (await fetch(url)).arrayBuffer();
  const stop = new AbortController();
  const onProgress = (_: string, done: number) => done >= stopAt && stop.abort("stopped");
  try {
    const found = await read(name, bytes, { seconds, signal: stop.signal, onProgress });
    return { read: found, chunks: chunk(found.parts) };
  } catch (error) {
    if (error instanceof Unreadable) return { code: error.code };
    return { code: String(error) };
  }
}

declare global {
  interface Window {
    outcome: typeof outcome;
  }
}

window.outcome = outcome;
