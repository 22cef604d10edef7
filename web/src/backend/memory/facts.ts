/** Facts: what the assistant takes as given. Whoever writes one by hand has confirmed it. */

import { edit } from "../../storage/editRow.ts";
import type { FactDoc } from "../../core/schema/rows.ts";
import { begun, now, type House } from "../account/accountContext.ts";

export async function addFact(house: House, key: string, value: string): Promise<string> {
  const row: FactDoc = { ...begun(house), key, value, sourceRemoved: false, confidence: 1, confirmed: true };
  await house.records.facts.insert(row);
  return row.id;
}

/** A fact that was refused goes up again when it is edited. */
export async function changeFact(
  house: House,
  id: string,
  change: Partial<Pick<FactDoc, "key" | "value" | "confirmed">>,
): Promise<void> {
  const found = await house.records.facts.findOne(id).exec();
  if (found) await edit(found, ({ syncError: _, ...row }) => ({ ...row, ...change, updatedAt: now() }));
}
