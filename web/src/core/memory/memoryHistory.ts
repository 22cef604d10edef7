/**
 * Versions of memories. When a memory is reworded, the old row stays as history: its `supersededBy` contains the id of
 * the new row, and the new row's `supersedes` contains the id of the old row. Devices write these links independently,
 * so a chain can be broken or cyclic. Every memory must still be shown.
 */

import { compareStrings } from "../../lib/compareStrings.ts";
import { groupBy } from "../../lib/groupBy.ts";
import type { MemoryDoc } from "../schema/rows.ts";

type Linked = Pick<MemoryDoc, "id" | "updatedAt" | "supersedes" | "supersededBy">;

/** The current version of a memory and its earlier versions, newest first. */
export interface MemoryHistory<Memory extends Linked = MemoryDoc> {
  current: Memory;
  earlier: Memory[];
}

/**
 * Group memories into histories, each memory in exactly one. Histories with the newest current version come
 * first.
 */
export function groupHistories<Memory extends Linked>(memories: readonly Memory[]): MemoryHistory<Memory>[] {
  const byId = new Map(memories.map((memory) => [memory.id, memory]));
  const latestFirst = memories.toSorted((a, b) => compareStrings(b.updatedAt, a.updatedAt));
  const olderOf = groupBy(
    latestFirst.filter(({ supersededBy }) => supersededBy),
    (one) => one.supersededBy!,
  );
  const seen = new Set<string>();

  /** Return a memory and all its earlier versions, except memories that were visited before. */
  function below(memory: Memory): Memory[] {
    if (seen.has(memory.id)) return [];
    seen.add(memory.id);
    const named = byId.get(memory.supersedes ?? "");
    const older = [...(named ? [named] : []), ...(olderOf.get(memory.id) ?? [])];
    return [memory, ...older.flatMap(below)];
  }

  const heads = latestFirst.filter(({ supersededBy }) => !byId.has(supersededBy ?? ""));
  // A memory that no head reaches belongs to a cycle. The newest memory of a cycle is the current version.
  return [...heads, ...latestFirst]
    .map(below)
    .flatMap(([current, ...earlier]) => (current ? [{ current, earlier }] : []))
    .toSorted((a, b) => compareStrings(b.current.updatedAt, a.current.updatedAt));
}

type Links = Pick<MemoryDoc, "id" | "supersedes" | "supersededBy">;

/**
 * Return the links of a history in which `chosen` is the current version and all other memories are earlier versions.
 */
export function relinkHistory({ current, earlier }: MemoryHistory<Linked>, chosen: string): Links[] {
  const others = [current, ...earlier].map(({ id }) => id).filter((id) => id !== chosen);
  const ids = [chosen, ...others];
  return ids.map((id, at) => ({
    id,
    ...(at > 0 ? { supersededBy: ids[at - 1]! } : {}),
    ...(at + 1 < ids.length ? { supersedes: ids[at + 1]! } : {}),
  }));
}
