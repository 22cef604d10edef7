/**
 * Delete rows with their dependents, as the server does when it receives the tombstones. Deleting a source does not
 * delete facts from it, and deleting a session does not delete its documents.
 */

import { deleteWithDependents } from "./cascade.ts";
import type { AccountContext } from "../account/accountContext.ts";

export function deleteDocuments({ database }: AccountContext, ids: readonly string[]): Promise<void> {
  return deleteWithDependents(database, { documents: ids });
}

/** Delete a session. Its documents stay, but the session no longer borrows them. */
export function deleteSession({ database }: AccountContext, id: string): Promise<void> {
  return deleteWithDependents(database, { sessions: [id] });
}

/**
 * Delete a project with its memories. With `withSessions`, delete its sessions, too; otherwise they move to the pool.
 */
export async function deleteProject(
  { database }: AccountContext,
  id: string,
  withSessions = false,
): Promise<void> {
  const found = withSessions ? await database.sessions.find({ selector: { projectId: id } }).exec() : [];
  await deleteWithDependents(database, { projects: [id], sessions: found.map((session) => session.id) });
}

export type Deletable = "facts" | "memories" | "episodes" | "entities" | "relationships" | "summaries";

export function deleteRow({ database }: AccountContext, collection: Deletable, id: string): Promise<void> {
  return deleteWithDependents(database, { [collection]: [id] });
}
