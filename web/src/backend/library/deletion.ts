/**
 * Deletes on this device, with all that goes with them; the server does the same when it hears of it. What stays is
 * as DESIGN 6 says: facts outlive their source, documents outlive their sessions.
 */

import { kill } from "./cascade.ts";
import type { House } from "../account/accountContext.ts";

export function deleteDocuments({ records }: House, ids: readonly string[]): Promise<void> {
  return kill(records, { documents: ids });
}

/** Documents stay; the session's id leaves those that it had borrowed. */
export function deleteSession({ records }: House, id: string): Promise<void> {
  return kill(records, { sessions: [id] });
}

/** What was remembered in it goes along. Its sessions return to the shared pool, or go too. */
export async function deleteProject({ records }: House, id: string, withSessions: boolean): Promise<void> {
  const found = withSessions ? await records.sessions.find({ selector: { projectId: id } }).exec() : [];
  await kill(records, { projects: [id], sessions: found.map((session) => session.id) });
}

export type Deletable = "facts" | "memories" | "episodes" | "entities" | "relationships" | "summaries";

export function deleteRow({ records }: House, collection: Deletable, id: string): Promise<void> {
  return kill(records, { [collection]: [id] });
}
