/** Lists show the most recently used row first, even if some devices' clocks are wrong. */

import { sortByLastUse } from "../../../../web/src/core/chat/sortByLastUse.ts";

const NOW = Date.parse("2026-05-10T12:00:00.000Z");
const row = (id: string, createdAt: string, updatedAt: string) => ({ id, createdAt, updatedAt });
const ids = (rows: ReturnType<typeof row>[]) => sortByLastUse(rows, NOW).map(({ id }) => id);

test("a row with a timestamp far in the future does not sort first", () => {
  const old = row("old", "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z");
  const today = row("today", "2026-01-01T00:00:00.000Z", "2026-05-10T11:00:00.000Z");
  const touched = row("touched", "2026-03-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z");
  const created = row("made", "2999-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z");
  expect(ids([created, touched, old, today])).toEqual(["today", "touched", "old", "made"]);
});

test("a row with a timestamp a few hours in the future sorts first", () => {
  const ahead = row("ahead", "2026-01-01T00:00:00.000Z", "2026-05-10T20:00:00.000Z");
  expect(ids([row("now", "2026-01-01T00:00:00.000Z", "2026-05-10T12:00:00.000Z"), ahead])).toEqual([
    "ahead",
    "now",
  ]);
});

test("rows with the same time keep their order", () => {
  const at = "2026-01-01T00:00:00.000Z";
  expect(ids([row("b", at, at), row("a", at, at)])).toEqual(["b", "a"]);
});
