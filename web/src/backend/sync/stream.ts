/**
 * The live stream of all collections. They share one connection, because browsers allow only six connections per
 * server.
 *
 * The stream uses fetch instead of EventSource, which can neither send a token nor report error responses. The server
 * sends a comment every 15 s, so a connection that stays silent is dead.
 */

import { SseParser } from "../../lib/sse.ts";
import { sleep } from "../../lib/sleep.ts";
import { STREAM_IDLE_TIMEOUT_MS, withIdleTimeout } from "../../lib/idleTimeout.ts";
import { notOurServer, openResponse, type Server } from "../../lib/http.ts";

const BACKOFF_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000];
/**
 * Minimum duration of a successful connection. A shorter connection counts as a failure, so that a proxy that cuts
 * every stream does not cause a pull at each quick reconnection.
 */
const MIN_STABLE_MS = 2_000;

export interface Page {
  collection: string;
  documents: unknown[];
  checkpoint: { lwt: number; id: string };
  forgottenAt?: string;
}

/** Progress of a document that the server embeds: `done` of `of` chunks have vectors. */
export interface EmbeddingProgress {
  documentId: string;
  done: number;
  of: number;
}

interface StreamListener {
  /** Callback for the start of the stream. Earlier changes must be pulled. */
  connected(): void;
  page(page: Page): void;
  progress?(progress: EmbeddingProgress): void;
  /** Callback for the end or failure of a connection. A new connection follows unless `signal` is aborted. */
  broken(error: unknown): void;
}

interface StreamOptions {
  /** Signal that ends the subscription. */
  signal: AbortSignal;
  /** Function that returns a signal. The signal ends the next delay early. */
  impatience: () => AbortSignal;
  /** Function that returns a promise. The promise resolves when requests are allowed. */
  allowed: () => Promise<void>;
  silenceMs?: number;
}

/** Stay connected until `signal` aborts, reconnecting with growing delays. */
export async function subscribeToServer(
  server: Server,
  versions: Record<string, number>,
  listener: StreamListener,
  { signal, impatience, allowed, silenceMs = STREAM_IDLE_TIMEOUT_MS }: StreamOptions,
): Promise<void> {
  const query = Object.entries(versions).map(([name, version]) => `${name}:${version}`);
  let failures = 0;
  const path = `/v1/sync/stream?versions=${query.join(",")}`;
  let since = Infinity; // time of the connection on the monotonic clock; Infinity if not connected
  const timing = { ...listener, connected: () => ((since = performance.now()), listener.connected()) };
  while (!signal.aborted) {
    await allowed();
    since = Infinity;
    try {
      await withIdleTimeout(silenceMs, signal, (signal, heard) =>
        readEvents(server, path, signal, heard, timing),
      );
      listener.broken(undefined);
    } catch (error) {
      if (signal.aborted) return;
      listener.broken(error);
    }
    if (performance.now() - since > MIN_STABLE_MS) failures = 0;
    await sleep(
      BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)] ?? 0,
      AbortSignal.any([signal, impatience()]),
    );
  }
}

async function readEvents(
  server: Server,
  path: string,
  signal: AbortSignal,
  heard: () => void,
  listener: StreamListener,
): Promise<void> {
  const answer = await openResponse(server, path, { signal });
  if (!answer.body || !answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    void answer.body?.cancel();
    throw notOurServer();
  }
  let isSilent = true;
  const text = new TextDecoder();
  const events = new SseParser();
  for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
    heard();
    if (isSilent) listener.connected();
    isSilent = false;
    for (const { event, data } of events.feed(text.decode(bytes, { stream: true }))) {
      if (event === "progress") listener.progress?.(JSON.parse(data) as EmbeddingProgress);
      else if (event === "message") listener.page(JSON.parse(data) as Page);
    }
  }
}
