/** Decay of memories: the weight of a memory halves every 30 days, as in server/vademecum/model/memory/recency.py. */

import type { MemoryDoc } from "../schema/rows.ts";

const HALF_LIFE_MS = 30 * 86_400_000;

type Fading = "pinned" | "fresh" | "fading" | "faint";

/**
 * Return the remaining share of a memory's weight: 1 for pinned memories, 0 if `updatedAt` is not a valid
 * time.
 */
export function freshness(
  { pinned, updatedAt }: Pick<MemoryDoc, "pinned" | "updatedAt">,
  now: number,
): number {
  if (pinned) return 1;
  const age = now - Date.parse(updatedAt);
  return Number.isNaN(age) ? 0 : 0.5 ** (Math.max(0, age) / HALF_LIFE_MS);
}

/**
 * Return the freshness as a label: "fresh" for about a week, "faint" when less than a quarter of the weight is left.
 */
export function freshnessLabel(memory: Pick<MemoryDoc, "pinned" | "updatedAt">, now: number): Fading {
  if (memory.pinned) return "pinned";
  const left = freshness(memory, now);
  if (left > 0.85) return "fresh";
  return left >= 0.25 ? "fading" : "faint";
}
