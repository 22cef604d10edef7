/** Remembered statements: by hand, pinned, said in other words, taken back. */

import { edit } from "../../storage/editRow.ts";
import { chosenAgain, remembered, type Remembered } from "../../core/memory/memoryHistory.ts";
import { folded } from "../../core/text/wordMatch.ts";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { kill } from "../library/cascade.ts";
import { begun, now, type House } from "../account/accountContext.ts";

/** What is current in the same place to the letter is fresh again, and not there twice. */
export async function addMemory(house: House, text: string, projectId: string | null): Promise<string> {
  const memories = await all(house);
  const home = memories.filter((memory) => (memory.projectId ?? null) === projectId);
  const known = remembered(home).find(({ current }) => folded(current.text) === folded(text));
  if (known) {
    await change(house, known.current.id, (row) => ({ ...row, updatedAt: now() }));
    return known.current.id;
  }
  const row: MemoryDoc = {
    ...begun(house),
    text,
    sessionIds: [],
    source: "user",
    pinned: false,
    ...(projectId === null ? {} : { projectId }),
  };
  await house.records.memories.insert(row);
  return row.id;
}

/** Who words it anew has said it anew. */
export function rewordMemory(house: House, id: string, text: string): Promise<void> {
  return change(house, id, (row) => ({ ...row, text, updatedAt: now() }));
}

/** `updatedAt` stays: it was not said again, and fades from when it was once it is pinned no more. */
export function pinMemory(house: House, id: string, pinned: boolean): Promise<void> {
  return change(house, id, (row) => ({ ...row, pinned }));
}

/** What a memory said before is what it says now; what it said is history, and can be chosen again. */
export async function chooseEarlier(house: House, id: string): Promise<void> {
  const chain = await chainOf(house, id);
  if (!chain) return;
  for (const { id: one, ...links } of chosenAgain(chain, id)) {
    await change(house, one, ({ supersedes: _, supersededBy: __, ...row }) => ({
      ...row,
      ...links,
      ...(one === id ? { updatedAt: now() } : {}),
    }));
  }
}

/** With all that it said before: that is to be forgotten, too. */
export async function deleteMemory(house: House, id: string): Promise<void> {
  const chain = await chainOf(house, id);
  if (chain) await kill(house.records, { memories: [chain.current, ...chain.earlier].map((row) => row.id) });
}

async function chainOf(house: House, id: string): Promise<Remembered | undefined> {
  const chains = remembered(await all(house));
  return chains.find(({ current, earlier }) => [current, ...earlier].some((memory) => memory.id === id));
}

async function all({ records }: House): Promise<MemoryDoc[]> {
  return (await records.memories.find().exec()).map((row) => row.toMutableJSON());
}

/** One that was refused goes up again when it is edited. */
async function change({ records }: House, id: string, into: (row: MemoryDoc) => MemoryDoc): Promise<void> {
  const found = await records.memories.findOne(id).exec();
  if (found) await edit<MemoryDoc>(found, ({ syncError: _, ...row }) => into(row));
}
