/**
 * A memory that was said again in other words stays as history: `supersededBy` names what stands for it now, whose
 * `supersedes` names it. Devices write the links apart from each other, so a chain may be broken or lead in a circle:
 * nothing that is remembered may vanish from sight for that.
 */

import { compareStrings } from "../../lib/compareStrings.ts";
import { groupBy } from "../../lib/groupBy.ts";
import type { MemoryDoc } from "../schema/rows.ts";

type Linked = Pick<MemoryDoc, "id" | "updatedAt" | "supersedes" | "supersededBy">;

/** What is said now, and what was said before, the latest of it first. */
export interface MemoryHistory<Memory extends Linked = MemoryDoc> {
  current: Memory;
  earlier: Memory[];
}

/** Every memory in exactly one of them, those last said first. */
export function groupHistories<Memory extends Linked>(memories: readonly Memory[]): MemoryHistory<Memory>[] {
  const byId = new Map(memories.map((memory) => [memory.id, memory]));
  const latestFirst = memories.toSorted((a, b) => compareStrings(b.updatedAt, a.updatedAt));
  const olderOf = groupBy(
    latestFirst.filter(({ supersededBy }) => supersededBy),
    (one) => one.supersededBy!,
  );
  const seen = new Set<string>();

  /** All that hangs below it, each once. */
  function below(memory: Memory): Memory[] {
    if (seen.has(memory.id)) return [];
    seen.add(memory.id);
    const named = byId.get(memory.supersedes ?? "");
    const older = [...(named ? [named] : []), ...(olderOf.get(memory.id) ?? [])];
    return [memory, ...older.flatMap(below)];
  }

  const heads = latestFirst.filter(({ supersededBy }) => !byId.has(supersededBy ?? ""));
  // What no head leads to goes round in a circle: what was said last stands for the rest.
  return [...heads, ...latestFirst]
    .map(below)
    .flatMap(([current, ...earlier]) => (current ? [{ current, earlier }] : []))
    .toSorted((a, b) => compareStrings(b.current.updatedAt, a.current.updatedAt));
}

type Links = Pick<MemoryDoc, "id" | "supersedes" | "supersededBy">;

/** The links of a chain once `chosen` is what it says now, and all else was said before. */
export function relinkHistory({ current, earlier }: MemoryHistory<Linked>, chosen: string): Links[] {
  const others = [current, ...earlier].map(({ id }) => id).filter((id) => id !== chosen);
  const ids = [chosen, ...others];
  return ids.map((id, at) => ({
    id,
    ...(at > 0 ? { supersededBy: ids[at - 1]! } : {}),
    ...(at + 1 < ids.length ? { supersedes: ids[at + 1]! } : {}),
  }));
}
