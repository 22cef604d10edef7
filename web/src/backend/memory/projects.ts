/** Projects: begin, name, describe; and which sessions are in one. What a delete takes along is in backend/library/deletion.ts. */

import { edit } from "../../storage/editRow.ts";
import type { ProjectDoc, SessionDoc } from "../../core/schema/rows.ts";
import { begun, now, type House } from "../account/accountContext.ts";

export async function addProject(house: House, name: string, description = ""): Promise<string> {
  const row: ProjectDoc = { ...begun(house), name, ...(description ? { description } : {}) };
  await house.records.projects.insert(row);
  return row.id;
}

/** One that was refused goes up again when it is edited. */
export async function changeProject(
  { records }: House,
  id: string,
  { name, description }: Required<Pick<ProjectDoc, "name" | "description">>,
): Promise<void> {
  const found = await records.projects.findOne(id).exec();
  if (!found) return;
  await edit<ProjectDoc>(found, ({ syncError: _, description: __, ...row }) => ({
    ...row,
    name,
    ...(description ? { description } : {}),
    updatedAt: now(),
  }));
}

/** Into a project, or, with null, back to the pool. What it sees changes at its next message. */
export async function moveSession({ records }: House, id: string, projectId: string | null): Promise<void> {
  const found = await records.sessions.findOne(id).exec();
  if (!found) return;
  await edit<SessionDoc>(found, ({ syncError: _, projectId: __, ...row }) => ({
    ...row,
    ...(projectId === null ? {} : { projectId }),
    updatedAt: now(),
  }));
}
