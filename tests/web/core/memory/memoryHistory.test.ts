/** Group memories with their earlier versions, even if the links between them are broken. */

import { relinkHistory, groupHistories } from "../../../../web/src/core/memory/memoryHistory.ts";

interface Linked {
  id: string;
  updatedAt: string;
  supersedes?: string;
  supersededBy?: string;
}

/** Return a memory. `links`: the ids of the memory that it supersedes and of the one that supersedes it. */
const memory = (id: string, day: number, ...links: [string?, string?]): Linked => ({
  id,
  updatedAt: `2026-01-0${day}T00:00:00.000Z`,
  ...(links[0] ? { supersedes: links[0] } : {}),
  ...(links[1] ? { supersededBy: links[1] } : {}),
});
const groupedIds = (memories: Linked[]) =>
  groupHistories(memories).map(({ current, earlier }) => [current.id, ...earlier.map(({ id }) => id)]);

test.each<[string, Linked[], string[][]]>([
  [
    "a chain of three versions",
    [memory("a", 1, "", "b"), memory("b", 2, "a", "c"), memory("c", 3, "b")],
    [["c", "b", "a"]],
  ],
  ["unrelated memories, newest first", [memory("a", 1), memory("b", 2)], [["b"], ["a"]]],
  [
    "two memories superseded by one",
    [memory("a", 1, "", "c"), memory("b", 2, "", "c"), memory("c", 3)],
    [["c", "b", "a"]],
  ],
  ["a memory whose successor is missing", [memory("a", 1, "", "gone")], [["a"]]],
  [
    "two memories that supersede each other",
    [memory("a", 1, "b", "b"), memory("b", 2, "a", "a")],
    [["b", "a"]],
  ],
  ["a memory that supersedes itself", [memory("a", 1, "a", "a")], [["a"]]],
])("groupHistories: %s", (_, memories, expected) => {
  expect(groupedIds(memories)).toEqual(expected);
});

test("restoring an earlier memory version keeps all versions", () => {
  const chain = [memory("a", 1, "", "b"), memory("b", 2, "a", "c"), memory("c", 3, "b")];
  const links = new Map(relinkHistory(groupHistories(chain)[0]!, "a").map((one) => [one.id, one]));
  const changed = chain.map(({ id, updatedAt }) => ({ ...links.get(id)!, updatedAt }));
  expect(groupedIds(changed)).toEqual([["a", "c", "b"]]);
  expect(links.get("b")).toEqual({ id: "b", supersededBy: "c" });
});
