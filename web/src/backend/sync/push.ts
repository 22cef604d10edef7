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

type Answer = WithDeleted<Row>[];
/** Sends the body of one push. */
type Send = (body: string) => Promise<Answer>;

interface Piece {
  write: Write;
  json: string;
}

/** Characters of one request. At three bytes each they are still well below what the server takes (32 MiB). */
const MOST = 4 * 2 ** 20;
/** What a later try may end: of the account, of the time that it took, of the load, of the versions and the epoch. */
const FOR_NOW = [401, 408, 409, 425, 426, 429];

/** The server's answers to all rows. If a later part fails, the batch is repeated: the server knows what it has. */
export async function push(writes: readonly Write[], send: Send): Promise<Answer> {
  const answers: Answer = [];
  for (const part of parts(writes)) answers.push(...(await offer(part, send)));
  return answers;
}

function* parts(writes: readonly Write[]): Generator<Piece[]> {
  let part: Piece[] = [];
  let size = 0;
  for (const write of writes) {
    const piece = pieceOf(write);
    if (part.length && size + piece.json.length > MOST) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(piece);
    size += piece.json.length;
  }
  yield part;
}

async function offer(pieces: Piece[], send: Send): Promise<Answer> {
  try {
    return await send(`[${pieces.map(({ json }) => json).join()}]`);
  } catch (error) {
    if (!isForGood(error)) throw error;
    const left = pieces.filter(({ write }) => !isRepeated(write));
    if (left.length < pieces.length) return left.length ? offer(left, send) : [];
    const middle = pieces.length >> 1;
    if (middle) {
      const first = await offer(pieces.slice(0, middle), send);
      return [...first, ...(await offer(pieces.slice(middle), send))];
    }
    const { write } = pieces[0]!;
    const lighter = withoutRefused(write);
    if (lighter) return offer([pieceOf(lighter)], send);
    if (write.newDocumentState._deleted) throw error; // it is blank: what hinders it is not what is in it
    return [await marked(write, send)];
  }
}

function pieceOf(write: Write): Piece {
  return { write, json: JSON.stringify(write) };
}

function isForGood(error: unknown): boolean {
  if (!(error instanceof Refusal)) return false;
  return error.status >= 400 && error.status < 500 && !FOR_NOW.includes(error.status);
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
function withoutRefused(write: Write): Write | undefined {
  const assumed = write.assumedMasterState;
  if (!assumed?.["syncError"] || assumed["updatedAt"] === null) return undefined;
  const { id, syncError } = assumed;
  return { ...write, assumedMasterState: { id, updatedAt: null, syncError, _deleted: false } };
}

/**
 * The server makes the mark, because it knows its own time and how its row is called: it is asked of one that nothing
 * but the id is left of, and that it must refuse. If it does not answer that either, then not the row is what hinders.
 */
async function marked({ newDocumentState: row, assumedMasterState }: Write, send: Send): Promise<Answer[0]> {
  const [answer] = await send(JSON.stringify([{ newDocumentState: { id: row["id"] }, assumedMasterState }]));
  const mark = answer?.["syncError"];
  if (!mark) throw foreign();
  return { ...row, syncError: { ...mark, message: written.refused } };
}
