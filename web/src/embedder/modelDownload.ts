/**
 * A model's files, kept in the browser in pieces. A piece is there whole or not at all, so a download that breaks off
 * goes on at the piece where it stopped, also after the page was closed. What is read is held against its SHA-256
 * every time: a file that was damaged, here or on the way, is loaded again.
 */

import { sha256 } from "../lib/sha256.ts";
import { sleep } from "../lib/sleep.ts";
import { IDLE_TIMEOUT_MS, withIdleTimeout } from "../lib/idleTimeout.ts";
import { CACHE, keyOf, keysOf, markOf, pieces } from "./modelFiles.ts";
import type { ModelFile } from "./workerMessages.ts";

const TRIES = 5;
const FIRST_WAIT_MS = 500;

/**
 * Until this worker ends, nobody drops the files of this model. `model` is the address of its folder, up to the last
 * slash; here and below.
 */
export function keep(model: string): Promise<void> {
  return new Promise((kept, failed) => {
    const forEver = () => new Promise<never>(kept as () => void);
    navigator.locks.request(lockOf(model), { mode: "shared" }, forEver).catch(failed);
  });
}

/** Takes away what is here of all other models, but for those that another worker keeps. */
export async function dropOthers(model: string): Promise<void> {
  const cache = await caches.open(CACHE);
  const kept = await cache.keys();
  const others = new Set(kept.map(({ url }) => modelOf(url)).filter((other) => other !== model));
  for (const other of others) {
    await navigator.locks.request(lockOf(other), { ifAvailable: true }, async (lock) => {
      if (!lock) return;
      await Promise.all(kept.filter(({ url }) => modelOf(url) === other).map((key) => cache.delete(key)));
    });
  }
}

function modelOf(url: string): string {
  return new URL(".", url).href;
}

function lockOf(model: string): string {
  return `${CACHE} ${model}`;
}

/** `onBytes` hears how many bytes of the file are here, each time that more of it comes. */
export async function read(
  url: string,
  file: ModelFile,
  onBytes: (loaded: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  if (!globalThis.caches) throw new Error("A browser keeps a model only for a page that came by HTTPS.");
  // Two tabs would load the same pieces.
  return navigator.locks.request(`${CACHE} ${file.sha256}`, async () => {
    const cache = await caches.open(CACHE);
    for (const _ of ["what is here", "loaded anew"]) {
      const data = await assemble(cache, url, file, onBytes);
      if ((await sha256(data)) === file.sha256) {
        // Without the mark, as on a full disk, a look says that it is not here: it is whole all the same.
        await cache.put(markOf(url), new Response()).catch(() => {});
        return data;
      }
      await Promise.all(keysOf(url, file).map((key) => cache.delete(key)));
    }
    throw new Error(
      `${file.path} does not arrive as the server has it. Is something between here and there?`,
    );
  });
}

async function assemble(cache: Cache, url: string, file: ModelFile, onBytes: (loaded: number) => void) {
  const data = new Uint8Array(file.bytes);
  for (const { from, to } of pieces(file)) {
    const key = keyOf(url, from);
    const kept = await cache.match(key);
    if (kept) {
      data.set(new Uint8Array(await kept.arrayBuffer()), from);
      continue;
    }
    const piece = await untilItComes(() => load(url, from, to));
    await cache.put(key, new Response(piece));
    data.set(piece, from);
    onBytes(to);
  }
  return data;
}

class Refused extends Error {}

function load(url: string, from: number, to: number): Promise<Uint8Array<ArrayBuffer>> {
  return withIdleTimeout(IDLE_TIMEOUT_MS, null, (signal, heard) =>
    loadPiece(url, { from, to }, signal, heard),
  );
}

/** It may be slow, as long as more of it comes. */
async function loadPiece(
  url: string,
  { from, to }: { from: number; to: number },
  signal: AbortSignal,
  heard: () => void,
): Promise<Uint8Array<ArrayBuffer>> {
  // Not into the browser's HTTP cache as well: the piece is kept here.
  const headers = { range: `bytes=${from}-${to - 1}` };
  const answer = await fetch(url, { headers, credentials: "omit", cache: "no-store", signal });
  const passing = answer.status === 429 || answer.status >= 500;
  if (answer.status !== 206 && !passing) throw new Refused(`${url}: the server answered ${answer.status}.`);
  const piece = new Uint8Array(to - from);
  const reader = answer.body!.getReader();
  let loaded = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    heard();
    if (!passing && loaded + read.value.length <= piece.length) piece.set(read.value, loaded);
    loaded += read.value.length;
  }
  if (passing || loaded !== piece.length) throw new Error(`${url}: the download broke off.`);
  return piece;
}

/** A connection that breaks is tried again, each time after twice as long. */
async function untilItComes<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1, wait = FIRST_WAIT_MS; ; tries++, wait *= 2) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof Refused || tries === TRIES) throw error;
      await sleep(wait);
    }
  }
}
