/** Projects: begin, name, describe; and which sessions are in one. What a delete takes along is in backend/library/deletion.ts. */

import { editRow } from "../../storage/editRow.ts";
import type { ProjectDoc, SessionDoc } from "../../core/schema/rows.ts";
import { newRow, now, type AccountContext } from "../account/accountContext.ts";

export async function addProject(context: AccountContext, name: string, description = ""): Promise<string> {
  const row: ProjectDoc = { ...newRow(context), name, ...(description ? { description } : {}) };
  await context.database.projects.insert(row);
  return row.id;
}

/** One that was refused goes up again when it is edited. */
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

/** Into a project, or, with null, back to the pool. What it sees changes at its next message. */
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
