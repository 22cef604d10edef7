/**
 * The live stream: all collections on one connection, because a browser allows six to a server.
 *
 * It reads with fetch and not with EventSource, which can neither send a token nor tell why it was refused. The
 * server's comments every 15 s tell a silent stream from a dead one.
 */

import { Events } from "../../lib/sse.ts";
import { pause } from "../../lib/sleep.ts";
import { STREAM_SILENCE_MS, unlessSilent } from "../../lib/idleTimeout.ts";
import { foreign, open, type Wire } from "../../lib/http.ts";

const BACKOFF_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000];
/** What is cut sooner counts as a failure: some proxies let no stream stand, and each new one wakes all that waits. */
const STABLE_MS = 2_000;

export interface StreamPage {
  collection: string;
  documents: unknown[];
  checkpoint: { lwt: number; id: string };
  forgottenAt?: string;
}

/** Of a document that the server embeds: `done` chunks of `of` have vectors. */
export interface EmbeddingProgress {
  documentId: string;
  done: number;
  of: number;
}

interface StreamListener {
  /** The server has begun to speak: what came before must be pulled. */
  onConnected(): void;
  onPage(page: StreamPage): void;
  onProgress?(progress: EmbeddingProgress): void;
  /** It broke, or could not be had; it is tried again unless `signal` says otherwise. */
  onBroken(error: unknown): void;
}

interface StreamOptions {
  /** Ends it. */
  signal: AbortSignal;
  /** Asked at each delay for what cuts it short. */
  retrySignal: () => AbortSignal;
  /** Resolves when the server may be asked. */
  waitUntilAllowed: () => Promise<void>;
  idleMs?: number;
}

/** Follows until it is ended, reconnecting with growing delays. */
export async function followStream(
  wire: Wire,
  versions: Record<string, number>,
  listener: StreamListener,
  { signal, retrySignal, waitUntilAllowed, idleMs: idleMs = STREAM_SILENCE_MS }: StreamOptions,
): Promise<void> {
  const query = Object.entries(versions).map(([name, version]) => `${name}:${version}`);
  let failures = 0;
  const path = `/v1/sync/stream?versions=${query.join(",")}`;
  let connectedAt = Infinity; // by a clock that nobody sets
  const timedListener = {
    ...listener,
    connected: () => ((connectedAt = performance.now()), listener.onConnected()),
  };
  while (!signal.aborted) {
    await waitUntilAllowed();
    connectedAt = Infinity;
    try {
      await unlessSilent(idleMs, signal, (signal, heard) =>
        readStream(wire, path, signal, heard, timedListener),
      );
      listener.onBroken(undefined);
    } catch (error) {
      if (signal.aborted) return;
      listener.onBroken(error);
    }
    if (performance.now() - connectedAt > STABLE_MS) failures = 0;
    await pause(
      BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)] ?? 0,
      AbortSignal.any([signal, retrySignal()]),
    );
  }
}

async function readStream(
  wire: Wire,
  path: string,
  signal: AbortSignal,
  onActivity: () => void,
  listener: StreamListener,
): Promise<void> {
  const answer = await open(wire, path, { signal });
  if (!answer.body || !answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    void answer.body?.cancel();
    throw foreign();
  }
  let isSilent = true;
  const text = new TextDecoder();
  const events = new Events();
  for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
    onActivity();
    if (isSilent) listener.onConnected();
    isSilent = false;
    for (const { event, data } of events.feed(text.decode(bytes, { stream: true }))) {
      if (event === "progress") listener.onProgress?.(JSON.parse(data) as EmbeddingProgress);
      else if (event === "message") listener.onPage(JSON.parse(data) as StreamPage);
    }
  }
}
