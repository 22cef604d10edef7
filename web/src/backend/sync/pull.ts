/** Pull rows from the server. */

import type { WithDeleted } from "rxdb/plugins/core";
import type { RxReplicationState } from "rxdb/plugins/replication";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { notOurServer, requestJson, type Server } from "../../lib/http.ts";

/** Checkpoint of a pull. `id` is `{epoch}.{mac}`, or only the epoch from an older server. */
export interface Checkpoint {
  lwt: number;
  id: string;
}

export const epochOf = ({ id }: Checkpoint): string => id.split(".", 1)[0]!;

type PullAnswer = { documents: WithDeleted<Row>[]; checkpoint: Checkpoint; forgottenAt?: string };
export type Replication = RxReplicationState<Row, Checkpoint>;

/** Request a page and validate it, because RxDB would loop or stall on JSON that is not from this server. */
export async function requestPage(server: Server, path: string, signal: AbortSignal, silenceMs?: number) {
  const page = await requestJson<PullAnswer | null>(server, path, { signal }, silenceMs);
  if (!Array.isArray(page?.documents) || typeof page.checkpoint?.id !== "string") throw notOurServer();
  return page;
}

/**
 * Start a pull. RxDB ignores the first request after a streamed row, so request twice. A surplus request does no harm.
 */
export function pullNow(replication: Replication): void {
  replication.reSync();
  replication.reSync();
}
