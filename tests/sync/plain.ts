/**
 * An RxDB client as anybody would write it: nothing of the app, RxDB's own conflict handler, one stream a
 * collection. What holds for it holds for every client.
 */

import { randomUUID } from "node:crypto";
import { replicateRxCollection, type RxReplicationState } from "rxdb/plugins/replication";
import type { RxCollection } from "rxdb/plugins/core";
import { Subject } from "rxjs";

export interface Endpoint {
  url: string;
  token: string;
  /** Named in every push. The replication begins from zero. */
  epoch?: string;
}

export type Plain = RxReplicationState<any, { lwt: number; id: string }>;

export function replicatePlain(
  collection: RxCollection,
  name: string,
  { url, token, epoch }: Endpoint,
  live = true,
  onPush: (rows: any[], answer: any[]) => void = () => {},
): Plain {
  const base = `${url}/v1/sync/${name}/0`;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(base + path, { ...init, headers });
    const body = await answer.json();
    if (!answer.ok || body.error) throw new Error(`${answer.status} ${body.code}`);
    return body;
  };
  const stream = new Subject<any>();
  const gone = new AbortController();
  const state = replicateRxCollection<any, { lwt: number; id: string }>({
    replicationIdentifier: epoch ? `${base}?epoch=${epoch}&${randomUUID()}` : base,
    collection,
    live,
    retryTime: 100,
    waitForLeadership: false,
    pull: {
      stream$: stream.asObservable(),
      handler: (checkpoint, limit) =>
        ask(`/pull?lwt=${checkpoint?.lwt ?? 0}&id=${checkpoint?.id ?? ""}&limit=${limit}`),
    },
    push: {
      handler: async (rows) => {
        const answer = await ask(`/push${epoch ? `?epoch=${epoch}` : ""}`, {
          method: "POST",
          body: JSON.stringify(rows),
        });
        onPush(rows, answer);
        return answer;
      },
    },
  });
  const cancel = state.cancel.bind(state);
  state.cancel = () => (gone.abort(), cancel());
  if (live) void listen(`${base}/pullStream`, headers, stream, gone.signal);
  return state;
}

async function listen(url: string, headers: HeadersInit, stream: Subject<any>, signal: AbortSignal) {
  while (!signal.aborted) {
    try {
      const answer = await fetch(url, { headers, signal });
      if (!answer.ok) throw new Error(String(answer.status));
      stream.next("RESYNC");
      const decoder = new TextDecoder();
      let rest = "";
      for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
        const events = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
        rest = events.pop() ?? "";
        for (const event of events) {
          if (event.startsWith("data: ")) stream.next(JSON.parse(event.slice(6)));
        }
      }
    } catch {
      // tried again below
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
