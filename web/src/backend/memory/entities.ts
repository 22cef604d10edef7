/** Entities of projects: what is noted of them. */

import { edit } from "../../storage/editRow.ts";
import type { EntityDoc } from "../../core/schema/rows.ts";
import { now, type House } from "../account/accountContext.ts";

export async function noteEntity({ records }: House, id: string, notes: string): Promise<void> {
  const found = await records.entities.findOne(id).exec();
  if (!found) return;
  await edit<EntityDoc>(found, ({ syncError: _, notes: __, ...row }) => ({
    ...row,
    ...(notes ? { notes } : {}),
    updatedAt: now(),
  }));
}
