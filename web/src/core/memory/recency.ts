/** How a memory fades, as server/vademecum/model/memory/recency.py counts it: half of its weight every thirty days. */

import type { MemoryDoc } from "../schema/rows.ts";

const HALF_LIFE_MS = 30 * 86_400_000;

type Fading = "pinned" | "fresh" | "fading" | "faint";

/** The share of its weight that is left. Pinned ones do not fade; a time that no calendar has is as old as can be. */
export function freshness(
  { pinned, updatedAt }: Pick<MemoryDoc, "pinned" | "updatedAt">,
  now: number,
): number {
  if (pinned) return 1;
  const age = now - Date.parse(updatedAt);
  return Number.isNaN(age) ? 0 : 0.5 ** (Math.max(0, age) / HALF_LIFE_MS);
}

/** The same in one word: fresh for a week, faint when less than a quarter is left. */
export function freshnessLabel(memory: Pick<MemoryDoc, "pinned" | "updatedAt">, now: number): Fading {
  if (memory.pinned) return "pinned";
  const left = freshness(memory, now);
  if (left > 0.85) return "fresh";
  return left >= 0.25 ? "fading" : "faint";
}
