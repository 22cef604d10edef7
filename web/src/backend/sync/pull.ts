/** What is asked of the server, and of RxDB, to fetch rows. */

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

/** RxDB trusts what it is given: it would tire the server, or stand still, over JSON that is not the server's. */
export async function requestPage(server: Server, path: string, signal: AbortSignal, silenceMs?: number) {
  const page = await requestJson<PullAnswer | null>(server, path, { signal }, silenceMs);
  if (!Array.isArray(page?.documents) || typeof page.checkpoint?.id !== "string") throw notOurServer();
  return page;
}

/**
 * RxDB drops what asks for a pull right behind a row of the stream, as after each push, whose row comes back. It is asked
 * twice: the second is dropped when the first was heeded.
 */
export function pullNow(replication: Replication): void {
  replication.reSync();
  replication.reSync();
}
