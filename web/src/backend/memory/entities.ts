/** Edit the user's notes on an entity. */

import { editRow } from "../../storage/editRow.ts";
import type { EntityDoc } from "../../core/schema/rows.ts";
import { now, type AccountContext } from "../account/accountContext.ts";

export async function editEntityNotes(
  { database }: AccountContext,
  id: string,
  notes: string,
): Promise<void> {
  const found = await database.entities.findOne(id).exec();
  if (!found) return;
  await editRow<EntityDoc>(found, ({ syncError: _, notes: __, ...row }) => ({
    ...row,
    ...(notes ? { notes } : {}),
    updatedAt: now(),
  }));
}
