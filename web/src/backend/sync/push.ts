/**
 * Sends a batch of rows in requests that the server takes. RxDB counts rows and not what is in them, and repeats for
 * ever a batch that is refused as a whole: what is too large for one request, or cannot be read. So it goes in parts,
 * and what is refused goes in halves, until the rows are found that cannot go at all: they come back marked, as if the
 * server had refused them by themselves, and stay on this device. The others are not held up.
 */

import { defaultConflictHandler, type WithDeleted } from "rxdb/plugins/core";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { storedSentences } from "../../core/chat/storedSentences.ts";
import type { Write } from "./refreshWrites.ts";
import { notOurServer, ApiError } from "../../lib/http.ts";

type Answer = WithDeleted<Row>[];
/** Sends the body of one push. */
type Send = (body: string) => Promise<Answer>;

interface EncodedWrite {
  write: Write;
  json: string;
}

/** Characters of one request. At three bytes each they are still well below what the server takes (32 MiB). */
const MAX_CHARS = 4 * 2 ** 20;
/** What a later try may end: of the account, of the time that it took, of the load, of the versions and the epoch. */
const RETRYABLE_STATUS = [401, 408, 409, 425, 426, 429];

/** The server's answers to all rows. If a later part fails, the batch is repeated: the server knows what it has. */
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
    if (write.newDocumentState._deleted) throw error; // it is blank: what hinders it is not what is in it
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

/** RxDB can send a row once more after it was marked; marked anew, with another time, it would have no end. */
function isRepeated({ newDocumentState, assumedMasterState }: Write): boolean {
  if (!assumedMasterState) return false;
  return defaultConflictHandler.isEqual(newDocumentState, assumedMasterState, "push");
}

/**
 * What was refused goes along with the edit that mends it, as the state that was assumed. Of that the mark is enough:
 * it names what the server has. Without a time the server merges nothing upon it, should that have changed.
 */
function withoutRejectedState(write: Write): Write | undefined {
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
): Promise<Answer[0]> {
  const [answer] = await send(JSON.stringify([{ newDocumentState: { id: row["id"] }, assumedMasterState }]));
  const mark = answer?.["syncError"];
  if (!mark) throw notOurServer();
  return { ...row, syncError: { ...mark, message: storedSentences.refused } };
}
