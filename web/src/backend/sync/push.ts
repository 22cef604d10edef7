/**
 * Sends a batch of rows in requests that the server takes. RxDB counts rows and not what is in them, and repeats for
 * ever a batch that is refused as a whole: what is too large for one request, or cannot be read. So it goes in parts,
 * and what is refused goes in halves, until the rows are found that cannot go at all: they come back marked, as if the
 * server had refused them by themselves, and stay on this device. The others are not held up.
 */

import { defaultConflictHandler, type WithDeleted } from "rxdb/plugins/core";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { written } from "../../core/chat/storedSentences.ts";
import type { Write } from "./refreshWrites.ts";
import { foreign, Refusal } from "../../lib/http.ts";

type PushResponse = WithDeleted<Row>[];
/** Sends the body of one push. */
type Send = (body: string) => Promise<PushResponse>;

interface SerializedWrite {
  write: Write;
  json: string;
}

/** Characters of one request. At three bytes each they are still well below what the server takes (32 MiB). */
const MAX_REQUEST_CHARS = 4 * 2 ** 20;
/** What a later try may end: of the account, of the time that it took, of the load, of the versions and the epoch. */
const RETRYABLE_STATUSES = [401, 408, 409, 425, 426, 429];

/** The server's answers to all rows. If a later part fails, the batch is repeated: the server knows what it has. */
export async function pushInParts(writes: readonly Write[], send: Send): Promise<PushResponse> {
  const answers: PushResponse = [];
  for (const part of splitIntoParts(writes)) answers.push(...(await sendOrSplit(part, send)));
  return answers;
}

function* splitIntoParts(writes: readonly Write[]): Generator<SerializedWrite[]> {
  let part: SerializedWrite[] = [];
  let size = 0;
  for (const write of writes) {
    const piece = serialize(write);
    if (part.length && size + piece.json.length > MAX_REQUEST_CHARS) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(piece);
    size += piece.json.length;
  }
  yield part;
}

async function sendOrSplit(writes: SerializedWrite[], send: Send): Promise<PushResponse> {
  try {
    return await send(`[${writes.map(({ json }) => json).join()}]`);
  } catch (error) {
    if (!isPermanent(error)) throw error;
    const remaining = writes.filter(({ write }) => !isRepeated(write));
    if (remaining.length < writes.length) return remaining.length ? sendOrSplit(remaining, send) : [];
    const middle = writes.length >> 1;
    if (middle) {
      const first = await sendOrSplit(writes.slice(0, middle), send);
      return [...first, ...(await sendOrSplit(writes.slice(middle), send))];
    }
    const { write } = writes[0]!;
    const reduced = withoutRejectedContent(write);
    if (reduced) return sendOrSplit([serialize(reduced)], send);
    if (write.newDocumentState._deleted) throw error; // it is blank: what hinders it is not what is in it
    return [await markRejected(write, send)];
  }
}

function serialize(write: Write): SerializedWrite {
  return { write, json: JSON.stringify(write) };
}

function isPermanent(error: unknown): boolean {
  if (!(error instanceof Refusal)) return false;
  return error.status >= 400 && error.status < 500 && !RETRYABLE_STATUSES.includes(error.status);
}

/** RxDB can send a row once more after it was marked; marked anew, with another time, it would have no end. */
function isRepeated({ newDocumentState, assumedMasterState }: Write): boolean {
  if (!assumedMasterState) return false;
  return defaultConflictHandler.isEqual(newDocumentState, assumedMasterState, "push");
}

/**
 * What was refused goes along with the edit that mends it, as the state that was assumed. Of that the mark is enough:
 * it names what the server has. Without a time the server merges nothing upon it, should that have changed.
 */
function withoutRejectedContent(write: Write): Write | undefined {
  const assumed = write.assumedMasterState;
  if (!assumed?.["syncError"] || assumed["updatedAt"] === null) return undefined;
  const { id, syncError } = assumed;
  return { ...write, assumedMasterState: { id, updatedAt: null, syncError, _deleted: false } };
}

/**
 * The server makes the mark, because it knows its own time and how its row is called: it is asked of one that nothing
 * but the id is left of, and that it must refuse. If it does not answer that either, then not the row is what hinders.
 */
async function markRejected(
  { newDocumentState: row, assumedMasterState }: Write,
  send: Send,
): Promise<PushResponse[0]> {
  const [answer] = await send(JSON.stringify([{ newDocumentState: { id: row["id"] }, assumedMasterState }]));
  const syncError = answer?.["syncError"];
  if (!syncError) throw foreign();
  return { ...row, syncError: { ...syncError, message: written.refused } };
}
