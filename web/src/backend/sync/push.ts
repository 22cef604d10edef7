/**
 * Push a batch of rows. RxDB limits batches by rows, not by size, and repeats a rejected batch forever. So a batch is
 * split into requests by size, and a rejected request is bisected to find the rows that cannot be accepted. These rows
 * are marked with `syncError`, as if the server had rejected them, and do not block the other rows.
 */

import { defaultConflictHandler, type WithDeleted } from "rxdb/plugins/core";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { UNSENDABLE } from "../../core/sync/unsendable.ts";
import type { Write } from "./refreshWrites.ts";
import { notOurServer, ApiError } from "../../lib/http.ts";

type Answer = WithDeleted<Row>[];
/** Function that sends the body of one request. */
type Send = (body: string) => Promise<Answer>;

interface EncodedWrite {
  write: Write;
  json: string;
}

/**
 * Maximum length of a request in characters. Even with three bytes per character, the request is well below the
 * server's limit of 32 MiB.
 */
const MAX_CHARS = 4 * 2 ** 20;
/** Statuses that a retry can resolve: signed out, timeouts, load, version or epoch mismatch. */
const RETRYABLE_STATUS = [401, 408, 409, 425, 426, 429];

/**
 * Push a batch and return the server's conflicts. If a request fails, RxDB repeats the whole batch, which does no harm
 * because a push is idempotent.
 */
export async function push(writes: readonly Write[], send: Send): Promise<Answer> {
  const answers: Answer = [];
  for (const part of splitIntoRequests(writes)) answers.push(...(await sendParts(part, send)));
  return answers;
}

function* splitIntoRequests(writes: readonly Write[]): Generator<EncodedWrite[]> {
  let part: EncodedWrite[] = [];
  let size = 0;
  for (const write of writes) {
    const piece = encodeWrite(write);
    if (part.length && size + piece.json.length > MAX_CHARS) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(piece);
    size += piece.json.length;
  }
  yield part;
}

async function sendParts(pieces: EncodedWrite[], send: Send): Promise<Answer> {
  try {
    return await send(`[${pieces.map(({ json }) => json).join()}]`);
  } catch (error) {
    if (!isPermanent(error)) throw error;
    const left = pieces.filter(({ write }) => !isRepeated(write));
    if (left.length < pieces.length) return left.length ? sendParts(left, send) : [];
    const middle = pieces.length >> 1;
    if (middle) {
      const first = await sendParts(pieces.slice(0, middle), send);
      return [...first, ...(await sendParts(pieces.slice(middle), send))];
    }
    const { write } = pieces[0]!;
    const lighter = withoutRejectedState(write);
    if (lighter) return sendParts([encodeWrite(lighter)], send);
    if (write.newDocumentState._deleted) throw error; // a tombstone has no content that could be invalid
    return [await markRejected(write, send)];
  }
}

function encodeWrite(write: Write): EncodedWrite {
  return { write, json: JSON.stringify(write) };
}

function isPermanent(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status >= 400 && error.status < 500 && !RETRYABLE_STATUS.includes(error.status);
}

/**
 * Return whether RxDB resends a row that is already marked as rejected. Marking the row again, with a new time, would
 * cause an endless loop.
 */
function isRepeated({ newDocumentState, assumedMasterState }: Write): boolean {
  if (!assumedMasterState) return false;
  return defaultConflictHandler.isEqual(newDocumentState, assumedMasterState, "push");
}

/**
 * Return the write with its assumed state reduced to the `syncError`. The full state contains the rejected content,
 * which may be why the request fails. `updatedAt` is null, so that the server does not use this state as the base of a
 * merge. Return undefined if the write has nothing to reduce.
 */
function withoutRejectedState(write: Write): Write | undefined {
  const assumed = write.assumedMasterState;
  if (!assumed?.["syncError"] || assumed["updatedAt"] === null) return undefined;
  const { id, syncError } = assumed;
  return { ...write, assumedMasterState: { id, updatedAt: null, syncError, _deleted: false } };
}

/**
 * Return the row with a `syncError` from the server, because only the server can set the error's time and revision. To
 * get the error, push only the id, which the server must reject. If the response has no error, throw, because the row
 * is not the cause of the failure.
 */
async function markRejected(
  { newDocumentState: row, assumedMasterState }: Write,
  send: Send,
): Promise<Answer[0]> {
  const [answer] = await send(JSON.stringify([{ newDocumentState: { id: row["id"] }, assumedMasterState }]));
  const mark = answer?.["syncError"];
  if (!mark) throw notOurServer();
  return { ...row, syncError: { ...mark, message: UNSENDABLE } };
}
