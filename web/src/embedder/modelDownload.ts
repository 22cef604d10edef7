/**
 * Download a model's files in pieces and cache them. An interrupted download resumes at the first missing piece, even
 * after the page was closed. A file's SHA-256 is checked each time it is read, and a damaged file is downloaded again.
 */

import { acquireLock, lockNames } from "../lib/locks.ts";
import { sha256 } from "../lib/sha256.ts";
import { sleep } from "../lib/sleep.ts";
import { IDLE_TIMEOUT_MS, withIdleTimeout } from "../lib/idleTimeout.ts";
import { CACHE, keyOf, keysOf, markOf, pieces } from "./modelFiles.ts";
import type { ModelFile } from "./workerMessages.ts";

const ATTEMPTS = 5;
const FIRST_WAIT_MS = 500;

/** Protect a model from eviction until this worker ends. `model` is the URL of the model's folder. */
export async function protectModel(model: string): Promise<void> {
  await acquireLock(lockNames.model(model), { mode: "shared" });
}

/** Delete the files of all models except `model` (a folder URL) and those that another worker protects. */
export async function evictOtherModels(model: string): Promise<void> {
  const cache = await caches.open(CACHE);
  const entries = await cache.keys();
  const others = new Set(entries.map(({ url }) => modelOf(url)).filter((other) => other !== model));
  for (const other of others) {
    await navigator.locks.request(lockNames.model(other), { ifAvailable: true }, async (lock) => {
      if (!lock) return;
      await Promise.all(entries.filter(({ url }) => modelOf(url) === other).map((key) => cache.delete(key)));
    });
  }
}

function modelOf(url: string): string {
  return new URL(".", url).href;
}

/**
 * Return a file, downloading its missing pieces. After each downloaded piece, `onBytes` gets the number of the file's
 * bytes on this device.
 */
export async function loadFile(
  url: string,
  file: ModelFile,
  onBytes: (loaded: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  if (!globalThis.caches) throw new Error("The browser caches a model only for pages with HTTPS.");
  // The lock keeps two tabs from downloading the same pieces.
  return navigator.locks.request(lockNames.model(file.sha256), async () => {
    const cache = await caches.open(CACHE);
    for (const _ of ["cached", "downloaded again"]) {
      const data = await assemble(cache, url, file, onBytes);
      if ((await sha256(data)) === file.sha256) {
        // Ignore a failure to store the mark, as on a full disk, because the file is complete nevertheless.
        await cache.put(markOf(url), new Response()).catch(() => {});
        return data;
      }
      await Promise.all(keysOf(url, file).map((key) => cache.delete(key)));
    }
    throw new Error(`${file.path} differs from the file on the server. A proxy may have changed it.`);
  });
}

async function assemble(cache: Cache, url: string, file: ModelFile, onBytes: (loaded: number) => void) {
  const data = new Uint8Array(file.bytes);
  for (const { from, to } of pieces(file)) {
    const key = keyOf(url, from);
    const cached = await cache.match(key);
    if (cached) {
      data.set(new Uint8Array(await cached.arrayBuffer()), from);
      continue;
    }
    const piece = await withRetries(() => fetchPiece(url, from, to));
    await cache.put(key, new Response(piece));
    data.set(piece, from);
    onBytes(to);
  }
  return data;
}

/** Error for a failure that a retry cannot resolve. */
class PermanentError extends Error {}

function fetchPiece(url: string, from: number, to: number): Promise<Uint8Array<ArrayBuffer>> {
  return withIdleTimeout(IDLE_TIMEOUT_MS, null, (signal, heard) =>
    loadPiece(url, { from, to }, signal, heard),
  );
}

/** Download a piece. `heard` resets the idle timeout. */
async function loadPiece(
  url: string,
  { from, to }: { from: number; to: number },
  signal: AbortSignal,
  heard: () => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const headers = { range: `bytes=${from}-${to - 1}` };
  // The piece is cached here, so keep it out of the HTTP cache.
  const response = await fetch(url, { headers, credentials: "omit", cache: "no-store", signal });
  const isTemporary = response.status === 429 || response.status >= 500;
  if (response.status !== 206 && !isTemporary)
    throw new PermanentError(`${url}: the server responded with status ${response.status}.`);
  const piece = new Uint8Array(to - from);
  const reader = response.body!.getReader();
  let loaded = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    heard();
    if (!isTemporary && loaded + read.value.length <= piece.length) piece.set(read.value, loaded);
    loaded += read.value.length;
  }
  if (isTemporary || loaded !== piece.length) throw new Error(`${url}: the download was interrupted.`);
  return piece;
}

/** Run `load` and retry failures with exponential backoff. */
async function withRetries<T>(load: () => Promise<T>): Promise<T> {
  for (let attempt = 1, wait = FIRST_WAIT_MS; ; attempt++, wait *= 2) {
    try {
      return await load();
    } catch (error) {
      if (error instanceof PermanentError || attempt === ATTEMPTS) throw error;
      await sleep(wait);
    }
  }
}
