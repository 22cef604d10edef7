/** Conversations: begin, name. What a delete takes along is in backend/library/deletion.ts. */

import { filter, map, merge, mergeMap, type Observable } from "rxjs";
import { editRow } from "../../storage/editRow.ts";
import { isReplicated } from "../sync/pendingRows.ts";
import { truncate } from "../../lib/truncate.ts";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { storedSentences } from "../../core/chat/storedSentences.ts";
import { newRow, now, type AccountContext } from "../account/accountContext.ts";

const MAX_TITLE = 60;

/** A session is a row from its first message or document on, and has its name from the first message. */
export async function ensureSession(
  context: AccountContext,
  id: string,
  firstMessage: string,
  projectId?: string,
): Promise<void> {
  const project = projectId && (await context.database.projects.findOne(projectId).exec()); // it may be gone by now
  const row: SessionDoc = {
    ...newRow(context, id),
    title: titleOf(firstMessage),
    mode: "analysis",
    ...(project ? { projectId: project.id } : {}),
  };
  // A question and a document may begin it at the same moment.
  const { title } = await context.database.sessions.insertIfNotExists(row);
  if (firstMessage && title === storedSentences.untitled)
    await changeSession(context, id, { title: titleOf(firstMessage) });
}

export async function changeSession(
  context: AccountContext,
  id: string,
  change: Partial<Pick<SessionDoc, "title" | "mode">>,
): Promise<void> {
  const found = await context.database.sessions.findOne(id).exec();
  // One that was refused goes up again when it is edited.
  if (found) await editRow(found, ({ syncError: _, ...row }) => ({ ...row, ...change, updatedAt: now() }));
}

/** Of each session that is deleted on this device, and each fact that is anywhere, its id. */
export function deleted$({ database }: AccountContext): Observable<string> {
  const sessions$ = database.sessions.eventBulks$.pipe(filter((bulk) => !isReplicated(bulk)));
  return merge(sessions$, database.facts.eventBulks$).pipe(
    mergeMap(({ events }) => events),
    filter(({ documentData }) => documentData._deleted),
    map(({ documentId }) => documentId),
  );
}

/** Those of these ids that are sessions here, and whether they are deleted. */
export async function sessionStates(
  { database }: AccountContext,
  ids: string[],
): Promise<[string, boolean][]> {
  const found = await database.sessions.storageInstance.findDocumentsById(ids, true);
  return found.map(({ id, _deleted }) => [id, _deleted]);
}

/** The beginning of what was said first, cut at a word. */
export function titleOf(firstMessage: string): string {
  const line = firstMessage.trim().split("\n")[0]!.trim();
  if (line.length <= MAX_TITLE) return line || storedSentences.untitled;
  const cut = truncate(line, MAX_TITLE);
  return `${cut.lastIndexOf(" ") > MAX_TITLE / 2 ? cut.slice(0, cut.lastIndexOf(" ")) : cut}…`;
}
