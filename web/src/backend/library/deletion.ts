/**
 * Deletes on this device, with all that goes with them; the server does the same when it hears of it. What stays is
 * as DESIGN 6 says: facts outlive their source, documents outlive their sessions.
 */

import { deleteWithDependents } from "./cascade.ts";
import type { AccountContext } from "../account/accountContext.ts";

export function deleteDocuments({ database }: AccountContext, ids: readonly string[]): Promise<void> {
  return deleteWithDependents(database, { documents: ids });
}

/** Documents stay; the session's id leaves those that it had borrowed. */
export function deleteSession({ database }: AccountContext, id: string): Promise<void> {
  return deleteWithDependents(database, { sessions: [id] });
}

/** What was remembered in it goes along. Its sessions return to the shared pool, or go too. */
export async function deleteProject(
  { database }: AccountContext,
  id: string,
  withSessions: boolean,
): Promise<void> {
  const found = withSessions ? await database.sessions.find({ selector: { projectId: id } }).exec() : [];
  await deleteWithDependents(database, { projects: [id], sessions: found.map((session) => session.id) });
}

export type Deletable = "facts" | "memories" | "episodes" | "entities" | "relationships" | "summaries";

export function deleteRow({ database }: AccountContext, collection: Deletable, id: string): Promise<void> {
  return deleteWithDependents(database, { [collection]: [id] });
}
