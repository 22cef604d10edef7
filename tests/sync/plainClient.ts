/**
 * A plain RxDB client without code of the app: it uses RxDB's default conflict handler and one stream per collection.
 * The server must support everything that this client does.
 */

import { randomUUID } from "node:crypto";
import { replicateRxCollection, type RxReplicationState } from "rxdb/plugins/replication";
import type { RxCollection } from "rxdb/plugins/core";
import { Subject } from "rxjs";
import { syncPath } from "./wire.ts";

export interface Endpoint {
  url: string;
  token: string;
  /** The epoch to send with every push. With it, the replication starts from zero. */
  epoch?: string;
}

export type Replication = RxReplicationState<any, { lwt: number; id: string }>;

export function replicatePlain(
  collection: RxCollection,
  name: string,
  { url, token, epoch }: Endpoint,
  live = true,
  onPush: (rows: any[], response: any[]) => void = () => {},
): Replication {
  const base = `${url}${syncPath(name)}`;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const request = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(base + path, { ...init, headers });
    const body = await response.json();
    if (!response.ok || body.error) throw new Error(`${response.status} ${body.code}`);
    return body;
  };
  const stream = new Subject<any>();
  const cancellation = new AbortController();
  const state = replicateRxCollection<any, { lwt: number; id: string }>({
    replicationIdentifier: epoch ? `${base}?epoch=${epoch}&${randomUUID()}` : base,
    collection,
    live,
    retryTime: 100,
    waitForLeadership: false,
    pull: {
      stream$: stream.asObservable(),
      handler: (checkpoint, limit) =>
        request(`/pull?lwt=${checkpoint?.lwt ?? 0}&id=${checkpoint?.id ?? ""}&limit=${limit}`),
    },
    push: {
      handler: async (rows) => {
        const path = `/push${epoch ? `?epoch=${epoch}` : ""}`;
        const response = await request(path, { method: "POST", body: JSON.stringify(rows) });
        onPush(rows, response);
        return response;
      },
    },
  });
  const cancel = state.cancel.bind(state);
  state.cancel = () => (cancellation.abort(), cancel());
  if (live) void listen(`${base}/pullStream`, headers, stream, cancellation.signal);
  return state;
}

async function listen(url: string, headers: HeadersInit, stream: Subject<any>, signal: AbortSignal) {
  while (!signal.aborted) {
    try {
      const response = await fetch(url, { headers, signal });
      if (!response.ok) throw new Error(String(response.status));
      stream.next("RESYNC");
      const decoder = new TextDecoder();
      let rest = "";
      for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
        const events = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
        rest = events.pop() ?? "";
        for (const event of events) {
          if (event.startsWith("data: ")) stream.next(JSON.parse(event.slice(6)));
        }
      }
    } catch {
      // Retry below.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
