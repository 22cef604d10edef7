/** Memory search on a device: by words within one scope; of equal scores, the newest memory ranks first. */

import cases from "../../../conformance/scope.json";
import { recall, type Rows } from "../../../../web/src/core/memory/recall.ts";
import { partitionOf, sees, type MemoryScope } from "../../../../web/src/core/memory/scope.ts";

const OLD = "2026-01-01T00:00:00.000Z";
const NOW = "2026-03-02T00:00:00.000Z";
const QUESTION = "Where does the canary sing?";
const POOL: MemoryScope = { kind: "pool" };
const inside = (projectId?: string) => (projectId ? { projectId } : {});
const common = (id: string) => ({ id, createdAt: OLD, updatedAt: OLD });
const session = (id: string, projectId?: string) => ({
  ...common(id),
  title: `Title of ${id}`,
  mode: "analysis" as const,
  documentScope: "chosen" as const,
  memory: "on" as const,
  ...inside(projectId),
});
const episode = (id: string, sessionId: string) => ({
  ...common(id),
  sessionId,
  userMessage: `canary ${id}`,
  aiResponse: "yes",
  citations: [],
  status: "done" as const,
});
const memory = (id: string, projectId?: string, sessionIds: string[] = []) => ({
  ...common(id),
  text: `canary ${id}`,
  sessionIds,
  source: "user" as const,
  pinned: false,
  ...inside(projectId),
});
const entity = (id: string, projectId: string) => ({
  ...common(id),
  name: `canary ${id}`,
  type: "concept" as const,
  projectId,
});

const ROWS: Rows = {
  projects: [
    { ...common("p1"), name: "Mill", documentIds: [] },
    { ...common("p2"), name: "Bakery", documentIds: [] },
  ],
  sessions: [session("loose"), session("in1", "p1"), session("in2", "p2")],
  episodes: [episode("e0", "loose"), episode("e1", "in1"), episode("e2", "in2")],
  memories: [memory("m0"), memory("m1", "p1"), memory("m2", "p2")],
  entities: [entity("n1", "p1"), entity("n2", "p2")],
};

function ids(scope: MemoryScope, rows: Rows = ROWS, query = QUESTION): string[] {
  return recall(query, scope, rows, NOW, 20)
    .map(({ id }) => id.split("/")[1]!)
    .toSorted();
}

describe("a scope sees only its own rows", () => {
  test.each(cases.sees)("sees: $name", ({ scope, project, seen }) => {
    expect(sees(scope as MemoryScope, project)).toBe(seen);
  });
});

describe("a row belongs to its project or pool", () => {
  test.each(cases.home)("partitionOf: $name", ({ project, home: expected }) => {
    expect(partitionOf(project)).toEqual(expected);
  });
});

test("each scope recalls only its own rows", () => {
  expect(ids(POOL)).toEqual(["e0", "m0"]);
  expect(ids(partitionOf("p1"))).toEqual(["e1", "m1", "n1"]);
  expect(ids(partitionOf("p2"))).toEqual(["e2", "m2", "n2"]);
  expect(ids({ kind: "all" })).toEqual(["e0", "e1", "e2", "m0", "m1", "m2", "n1", "n2"]);
  const moved = { ...ROWS, sessions: [session("loose", "p1"), session("in1"), session("in2", "p2")] };
  expect(ids(POOL, moved)).toEqual(["e1", "m0"]);
  expect(ids(partitionOf("p1"), moved)).toEqual(["e0", "m1", "n1"]);
});

test("superseded, unfinished and unrelated rows are not recalled", () => {
  const rows: Rows = {
    ...ROWS,
    episodes: [
      { ...episode("e3", "loose"), status: "streaming" },
      { ...episode("e4", "loose"), status: "stopped" },
    ],
    memories: [{ ...memory("m3"), supersededBy: "m4" }, memory("m4"), { ...memory("m5"), text: "an owl" }],
  };
  expect(ids(POOL, rows)).toEqual(["e4", "m4"]);
  expect(ids(POOL, ROWS, "")).toEqual([]);
});

test("turns from a date named in the question rank first", () => {
  const days = ["2025-05-06", "2025-05-07", "2025-06-07"];
  const episodes = days.map((day) => ({ ...episode(day, "loose"), createdAt: `${day}T12:00:00.000Z` }));
  const first = (question: string) => recall(question, POOL, { ...ROWS, episodes }, NOW, 20)[0]?.turn;
  expect(first(`${QUESTION} on 7 May 2025`)).toBe("2025-05-07");
  expect(first(`${QUESTION} in June`)).toBe("2025-06-07");
  expect(first("May 6")).toBe("2025-05-06");
});

test("a recalled row names its session only if the scope includes it", () => {
  const rows: Rows = {
    ...ROWS,
    episodes: [episode("e1", "in1")],
    memories: [memory("here", "p1", ["in1"]), memory("left", "p1", ["in2"])],
  };
  const found = recall(QUESTION, partitionOf("p1"), rows, NOW, 20);
  expect(Object.fromEntries(found.map(({ id, session }) => [id, session]))).toEqual({
    "episodes/e1": 'session "Title of in1"',
    "memories/here": 'session "Title of in1"',
    "memories/left": 'project "Mill"',
    "entities/n1": 'project "Mill"',
  });
  expect(found.find(({ id }) => id === "episodes/e1")).toMatchObject({ turn: "e1", date: "2026-01-01" });
});

test("newer memories rank first, and pinned memories do not decay", () => {
  const plain = { text: "canary" };
  const rows: Rows = {
    ...ROWS,
    episodes: [],
    memories: [
      { ...memory("a-old"), ...plain },
      { ...memory("new"), ...plain, updatedAt: "2026-02-01T00:00:00.000Z" },
      { ...memory("pinned"), ...plain, pinned: true },
    ],
  };
  const found = recall(QUESTION, POOL, rows, NOW, 2);
  expect(found.map(({ id }) => id)).toEqual(["memories/pinned", "memories/new"]);
});
