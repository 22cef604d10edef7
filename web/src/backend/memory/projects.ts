/** Create and change projects, and move sessions between them. Deletion is in backend/deletion/deletion.ts. */

import { editRow } from "../../storage/editRow.ts";
import type { ProjectDoc, SessionDoc } from "../../core/schema/rows.ts";
import { newRow, now, type AccountContext } from "../account/accountContext.ts";

export async function addProject(context: AccountContext, name: string, description = ""): Promise<string> {
  const row: ProjectDoc = {
    ...newRow(context),
    name,
    documentIds: [],
    ...(description ? { description } : {}),
  };
  await context.database.projects.insert(row);
  return row.id;
}

/** Edit a project. If the server had rejected the project, it is sent again. */
export async function changeProject(
  { database }: AccountContext,
  id: string,
  { name, description }: Required<Pick<ProjectDoc, "name" | "description">>,
): Promise<void> {
  const found = await database.projects.findOne(id).exec();
  if (!found) return;
  await editRow<ProjectDoc>(found, ({ syncError: _, description: __, ...row }) => ({
    ...row,
    name,
    ...(description ? { description } : {}),
    updatedAt: now(),
  }));
}

/**
 * Move a session into a project, or into the pool if `projectId` is null. The session's next message uses the new
 * scope.
 */
export async function moveSession(
  { database }: AccountContext,
  id: string,
  projectId: string | null,
): Promise<void> {
  const found = await database.sessions.findOne(id).exec();
  if (!found) return;
  await editRow<SessionDoc>(found, ({ syncError: _, projectId: __, ...row }) => ({
    ...row,
    ...(projectId === null ? {} : { projectId }),
    updatedAt: now(),
  }));
}
