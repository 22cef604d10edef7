/**
 * The live stream: all collections on one connection, because a browser allows six to a server.
 *
 * It reads with fetch and not with EventSource, which can neither send a token nor tell why it was refused. The
 * server's comments every 15 s tell a silent stream from a dead one.
 */

import { open, type Wire } from "./wire.ts";

const SILENCE_MS = 45_000;
const PATIENCE_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000];

export interface Page {
  collection: string;
  documents: unknown[];
  checkpoint: { lwt: number; id: string };
}

export interface Listener {
  /** The connection stands: what came before it must be pulled. */
  connected(): void;
  page(page: Page): void;
  /** It broke, or could not be had; it is tried again unless `signal` says otherwise. */
  broken(error: unknown): void;
}

/** Follow until `signal` aborts, reconnecting with growing delays. */
export async function follow(
  wire: Wire,
  versions: Record<string, number>,
  listener: Listener,
  signal: AbortSignal,
): Promise<void> {
  const query = Object.entries(versions).map(([name, version]) => `${name}:${version}`);
  let failures = 0;
  while (!signal.aborted) {
    try {
      await listen(wire, `/v1/sync/stream?versions=${query.join(",")}`, signal, {
        ...listener,
        connected() {
          failures = 0;
          listener.connected();
        },
      });
      listener.broken(undefined);
    } catch (error) {
      if (signal.aborted) return;
      listener.broken(error);
    }
    await pause(PATIENCE_MS[Math.min(failures++, PATIENCE_MS.length - 1)] ?? 0, signal);
  }
}

async function listen(wire: Wire, path: string, signal: AbortSignal, listener: Listener): Promise<void> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const answer = await open(wire, path, { signal: AbortSignal.any([signal, silence.signal]) });
    if (!answer.body) throw new Error("The stream has no body.");
    listener.connected();
    const text = new TextDecoder();
    let pieces: string[] = []; // of an event that is not whole yet
    for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const piece = text.decode(bytes, { stream: true });
      const seam = (pieces.at(-1)?.slice(-1) ?? "") + piece;
      pieces.push(piece);
      if (!seam.includes("\n\n")) continue; // a large event comes in many: looked through once
      const events = pieces.join("").split("\n\n");
      pieces = [events.pop() ?? ""];
      for (const event of events) {
        if (event.startsWith("data: ")) listener.page(JSON.parse(event.slice(6)) as Page);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
