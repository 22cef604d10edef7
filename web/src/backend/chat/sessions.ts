/** Conversations: begin, name. What a delete takes along is in backend/library/deletion.ts. */

import { filter, map, merge, mergeMap, type Observable } from "rxjs";
import { edit } from "../../storage/editRow.ts";
import { isSynced } from "../sync/pendingRows.ts";
import { beginning } from "../../lib/truncate.ts";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { written } from "../../core/chat/storedSentences.ts";
import { begun, now, type House } from "../account/accountContext.ts";

const TITLE_MAX = 60;

/** A session is a row from its first message or document on, and has its name from the first message. */
export async function beginSession(
  house: House,
  id: string,
  about: string,
  projectId?: string,
): Promise<void> {
  const project = projectId && (await house.records.projects.findOne(projectId).exec()); // it may be gone by now
  const row: SessionDoc = {
    ...begun(house, id),
    title: titleOf(about),
    mode: "analysis",
    ...(project ? { projectId: project.id } : {}),
  };
  // A question and a document may begin it at the same moment.
  const { title } = await house.records.sessions.insertIfNotExists(row);
  if (about && title === written.untitled) await changeSession(house, id, { title: titleOf(about) });
}

export async function changeSession(
  house: House,
  id: string,
  change: Partial<Pick<SessionDoc, "title" | "mode">>,
): Promise<void> {
  const found = await house.records.sessions.findOne(id).exec();
  // One that was refused goes up again when it is edited.
  if (found) await edit(found, ({ syncError: _, ...row }) => ({ ...row, ...change, updatedAt: now() }));
}

/** Of each session that is deleted on this device, and each fact that is anywhere, its id. */
export function deleted$({ records }: House): Observable<string> {
  const sessions$ = records.sessions.eventBulks$.pipe(filter((bulk) => !isSynced(bulk)));
  return merge(sessions$, records.facts.eventBulks$).pipe(
    mergeMap(({ events }) => events),
    filter(({ documentData }) => documentData._deleted),
    map(({ documentId }) => documentId),
  );
}

/** Those of these ids that are sessions here, and whether they are deleted. */
export async function known({ records }: House, ids: string[]): Promise<[string, boolean][]> {
  const found = await records.sessions.storageInstance.findDocumentsById(ids, true);
  return found.map(({ id, _deleted }) => [id, _deleted]);
}

/** The beginning of what was said first, cut at a word. */
export function titleOf(about: string): string {
  const line = about.trim().split("\n")[0]!.trim();
  if (line.length <= TITLE_MAX) return line || written.untitled;
  const cut = beginning(line, TITLE_MAX);
  return `${cut.lastIndexOf(" ") > TITLE_MAX / 2 ? cut.slice(0, cut.lastIndexOf(" ")) : cut}…`;
}
