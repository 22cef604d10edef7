/** Create and change chats. Deletion is in backend/deletion/deletion.ts. */

import { filter, map, merge, mergeMap, type Observable } from "rxjs";
import { editRow } from "../../storage/editRow.ts";
import { isReplicated } from "../sync/pendingRows.ts";
import { truncate } from "../../lib/truncate.ts";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { newRow, now, type AccountContext } from "../account/accountContext.ts";

const MAX_TITLE = 60;

/** Create the session if it does not exist. Its title is taken from the first message. */
export async function ensureSession(
  context: AccountContext,
  id: string,
  firstMessage: string,
  projectId?: string,
): Promise<void> {
  // Ignore a project that has been deleted since the user chose it.
  const project = projectId && (await context.database.projects.findOne(projectId).exec());
  const row: SessionDoc = {
    ...newRow(context, id),
    title: titleOf(firstMessage),
    mode: "analysis",
    ...{ documentScope: "chosen", memory: "on" },
    ...(project ? { projectId: project.id } : {}),
  };
  // Insert only if absent, because a question and a document may create the session at the same moment.
  const { title } = await context.database.sessions.insertIfNotExists(row);
  if (firstMessage && !title) await changeSession(context, id, { title: titleOf(firstMessage) });
}

export async function changeSession(
  context: AccountContext,
  id: string,
  change: Partial<Pick<SessionDoc, "title" | "mode">>,
): Promise<void> {
  const found = await context.database.sessions.findOne(id).exec();
  // Remove `syncError`, so that a rejected row is sent again.
  if (found) await editRow(found, ({ syncError: _, ...row }) => ({ ...row, ...change, updatedAt: now() }));
}

/** Emit the id of each session deleted on this device and each fact deleted anywhere. */
export function deleted$({ database }: AccountContext): Observable<string> {
  const sessions$ = database.sessions.eventBulks$.pipe(filter((bulk) => !isReplicated(bulk)));
  return merge(sessions$, database.facts.eventBulks$).pipe(
    mergeMap(({ events }) => events),
    filter(({ documentData }) => documentData._deleted),
    map(({ documentId }) => documentId),
  );
}

/** Return the id of each given session that is on this device, and whether the session is deleted. */
export async function sessionStates(
  { database }: AccountContext,
  ids: string[],
): Promise<[string, boolean][]> {
  const found = await database.sessions.storageInstance.findDocumentsById(ids, true);
  return found.map(({ id, _deleted }) => [id, _deleted]);
}

/** Return a title: the first line of the message, shortened at the end of a word if too long. It may be empty. */
export function titleOf(firstMessage: string): string {
  const line = firstMessage.trim().split("\n")[0]!.trim();
  if (line.length <= MAX_TITLE) return line;
  const cut = truncate(line, MAX_TITLE);
  return `${cut.lastIndexOf(" ") > MAX_TITLE / 2 ? cut.slice(0, cut.lastIndexOf(" ")) : cut}…`;
}
