/**
 * A model's files, kept in the browser in pieces. A piece is there whole or not at all, so a download that breaks off
 * goes on at the piece where it stopped, also after the page was closed. What is read is held against its SHA-256
 * every time: a file that was damaged, here or on the way, is loaded again.
 */

import type { ModelFile } from "./messages.ts";

const CACHE = "vademecum-models";
const PIECE = 2 ** 20;
const TRIES = 5;
const FIRST_WAIT_MS = 500;

/** `onBytes` hears how many bytes of the file are here. */
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
      if ((await sha256(data)) === file.sha256) return data;
      await Promise.all(pieces(file).map(({ from }) => cache.delete(keyOf(url, from))));
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
    const piece = kept ? await kept.arrayBuffer() : await patiently(() => load(url, from, to));
    if (!kept) await cache.put(key, new Response(piece));
    data.set(new Uint8Array(piece), from);
    onBytes(to);
  }
  return data;
}

function pieces(file: ModelFile): { from: number; to: number }[] {
  const count = Math.ceil(file.bytes / PIECE);
  return Array.from({ length: count }, (_, n) => ({
    from: n * PIECE,
    to: Math.min((n + 1) * PIECE, file.bytes),
  }));
}

function keyOf(url: string, from: number): string {
  return `${url}?from=${from}`;
}

class Refused extends Error {}

async function load(url: string, from: number, to: number): Promise<ArrayBuffer> {
  // Not into the browser's HTTP cache as well: the piece is kept here.
  const headers = { range: `bytes=${from}-${to - 1}` };
  const answer = await fetch(url, { headers, credentials: "omit", cache: "no-store" });
  const passing = answer.status === 429 || answer.status >= 500;
  if (answer.status !== 206 && !passing) throw new Refused(`${url}: the server answered ${answer.status}.`);
  const piece = await answer.arrayBuffer();
  if (passing || piece.byteLength !== to - from) throw new Error(`${url}: the download broke off.`);
  return piece;
}

/** A connection that breaks is tried again, each time after twice as long. */
async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1, wait = FIRST_WAIT_MS; ; tries++, wait *= 2) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof Refused || tries === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

async function sha256(data: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
