/** A page with only the parsers, for tests to call. */

import { parseInWorker, Unreadable, type Parsed } from "../../../web/src/parsers/parseInWorker.ts";
import { chunk, type Chunk } from "../../../web/src/core/documents/chunking.ts";

export interface Outcome {
  parsed?: Parsed;
  chunks?: Chunk[];
  code?: string;
}

export interface ParseRequest {
  /** The address of the file on the test's server. */
  url: string;
  name: string;
  seconds?: number;
  /** Abort after this many pages. */
  stopAt?: number;
}

async function outcome({ url, name, seconds = 60, stopAt = Infinity }: ParseRequest): Promise<Outcome> {
  const bytes = await (await fetch(url)).arrayBuffer();
  const controller = new AbortController();
  const onProgress = (_: string, done: number) => done >= stopAt && controller.abort("stopped");
  try {
    const parsed = await parseInWorker(name, bytes, { seconds, signal: controller.signal, onProgress });
    return { parsed, chunks: chunk(parsed.parts) };
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
