import { freshnessLabel, freshness } from "../../../../web/src/core/memory/recency.ts";

const DAY = 86_400_000;
const now = Date.parse("2026-06-30T00:00:00.000Z");
const memory = (days: number, pinned = false) => ({
  pinned,
  updatedAt: new Date(now - days * DAY).toISOString(),
});

test("freshness halves every 30 days unless pinned", () => {
  expect([0, 30, 60].map((days) => freshness(memory(days), now))).toEqual([1, 0.5, 0.25]);
  expect(freshness(memory(60, true), now)).toBe(1);
  expect(freshness(memory(-1), now)).toBe(1); // written by a device whose clock is ahead
});

test.each([
  [0, "fresh"],
  [7, "fresh"],
  [8, "fading"],
  [60, "fading"],
  [61, "faint"],
] as const)("after %i days, an unpinned memory is labeled %s", (days, expected) => {
  expect(freshnessLabel(memory(days), now)).toBe(expected);
  expect(freshnessLabel(memory(days, true), now)).toBe("pinned");
});
