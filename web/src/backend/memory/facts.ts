/** Add and edit facts about the user. A fact that the user adds is confirmed at once, so that it enters prompts. */

import { editRow } from "../../storage/editRow.ts";
import type { FactDoc } from "../../core/schema/rows.ts";
import { newRow, now, type AccountContext } from "../account/accountContext.ts";

export async function addFact(context: AccountContext, key: string, value: string): Promise<string> {
  const row: FactDoc = {
    ...newRow(context),
    key,
    value,
    sourceRemoved: false,
    confidence: 1,
    confirmed: true,
  };
  await context.database.facts.insert(row);
  return row.id;
}

/** Edit a fact. If the server had rejected the fact, it is sent again. */
export async function changeFact(
  context: AccountContext,
  id: string,
  change: Partial<Pick<FactDoc, "key" | "value" | "confirmed">>,
): Promise<void> {
  const found = await context.database.facts.findOne(id).exec();
  if (found) await editRow(found, ({ syncError: _, ...row }) => ({ ...row, ...change, updatedAt: now() }));
}
