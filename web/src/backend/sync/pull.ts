/** Pull rows from the server. */

import type { WithDeleted } from "rxdb/plugins/core";
import type { RxReplicationState } from "rxdb/plugins/replication";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { notOurServer, requestJson, type Server } from "../../lib/http.ts";

/** `id` is `{epoch}.{mac}`, or from an older server the epoch alone. */
export interface Checkpoint {
  lwt: number;
  id: string;
}

export const epochOf = ({ id }: Checkpoint): string => id.split(".", 1)[0]!;

type PullAnswer = { documents: WithDeleted<Row>[]; checkpoint: Checkpoint; forgottenAt?: string };
export type Replication = RxReplicationState<Row, Checkpoint>;

/** Request a page and validate it: with foreign JSON, RxDB would loop or stall. */
export async function requestPage(server: Server, path: string, signal: AbortSignal, silenceMs?: number) {
  const page = await requestJson<PullAnswer | null>(server, path, { signal }, silenceMs);
  if (!Array.isArray(page?.documents) || typeof page.checkpoint?.id !== "string") throw notOurServer();
  return page;
}

/** Start a pull. RxDB drops a request right after a streamed row, so request twice; it drops a surplus one. */
export function pullNow(replication: Replication): void {
  replication.reSync();
  replication.reSync();
}
