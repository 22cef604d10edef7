/** Entities of projects: what is noted of them. */

import { edit } from "../engines/records/edit.ts";
import type { EntityDoc } from "../model/rows.ts";
import { now, type House } from "./house.ts";

export async function noteEntity({ records }: House, id: string, notes: string): Promise<void> {
  const found = await records.entities.findOne(id).exec();
  if (!found) return;
  await edit<EntityDoc>(found, ({ syncError: _, notes: __, ...row }) => ({
    ...row,
    ...(notes ? { notes } : {}),
    updatedAt: now(),
  }));
}
