/** Memories: add, edit, pin, restore earlier versions, delete. */

import { editRow } from "../../storage/editRow.ts";
import { relinkHistory, groupHistories, type MemoryHistory } from "../../core/memory/memoryHistory.ts";
import { foldForMatch } from "../../core/text/wordMatch.ts";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { deleteWithDependents } from "../deletion/cascade.ts";
import { newRow, now, type AccountContext } from "../account/accountContext.ts";

/**
 * Add a memory. If the project, or the pool, already has a current memory with the same text apart from case and
 * accents, refresh that memory instead.
 */
export async function addMemory(
  context: AccountContext,
  text: string,
  projectId: string | null,
): Promise<string> {
  const memories = await all(context);
  const home = memories.filter((memory) => (memory.projectId ?? null) === projectId);
  const known = groupHistories(home).find(({ current }) => foldForMatch(current.text) === foldForMatch(text));
  if (known) {
    await updateMemory(context, known.current.id, (row) => ({ ...row, updatedAt: now() }));
    return known.current.id;
  }
  const row: MemoryDoc = {
    ...newRow(context),
    text,
    sessionIds: [],
    source: "user",
    pinned: false,
    ...(projectId === null ? {} : { projectId }),
  };
  await context.database.memories.insert(row);
  return row.id;
}

/** Change the text of a memory. The memory counts as mentioned now. */
export function editMemory(context: AccountContext, id: string, text: string): Promise<void> {
  return updateMemory(context, id, (row) => ({ ...row, text, updatedAt: now() }));
}

/** Pin or unpin a memory. `updatedAt` stays, so that an unpinned memory decays from its last mention. */
export function pinMemory(context: AccountContext, id: string, pinned: boolean): Promise<void> {
  return updateMemory(context, id, (row) => ({ ...row, pinned }));
}

/** Make an earlier version of a memory the current one. The version that was current becomes an earlier one. */
export async function restoreMemoryVersion(context: AccountContext, id: string): Promise<void> {
  const chain = await versionsOf(context, id);
  if (!chain) return;
  for (const { id: one, ...links } of relinkHistory(chain, id)) {
    await updateMemory(context, one, ({ supersedes: _, supersededBy: __, ...row }) => ({
      ...row,
      ...links,
      ...(one === id ? { updatedAt: now() } : {}),
    }));
  }
}

/** Delete a memory with its earlier versions. */
export async function deleteMemory(context: AccountContext, id: string): Promise<void> {
  const chain = await versionsOf(context, id);
  if (chain)
    await deleteWithDependents(context.database, {
      memories: [chain.current, ...chain.earlier].map((row) => row.id),
    });
}

async function versionsOf(context: AccountContext, id: string): Promise<MemoryHistory | undefined> {
  const chains = groupHistories(await all(context));
  return chains.find(({ current, earlier }) => [current, ...earlier].some((memory) => memory.id === id));
}

async function all({ database }: AccountContext): Promise<MemoryDoc[]> {
  return (await database.memories.find().exec()).map((row) => row.toMutableJSON());
}

/** Edit a memory. If the server had rejected the memory, it is sent again. */
async function updateMemory(
  { database }: AccountContext,
  id: string,
  into: (row: MemoryDoc) => MemoryDoc,
): Promise<void> {
  const found = await database.memories.findOne(id).exec();
  if (found) await editRow<MemoryDoc>(found, ({ syncError: _, ...row }) => into(row));
}
