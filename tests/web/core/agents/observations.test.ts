/** Requests for observations of agents, and the headings of observations. */

import {
  appendPage,
  NO_FILTER,
  hasMore,
  headingOf,
  listUrl,
  searchRequest,
  type Observation,
} from "../../../../web/src/core/agents/observations.ts";

test("an empty filter adds no request parameters", () => {
  expect(listUrl("p 1", NO_FILTER, 50, null)).toBe("/v1/observations?project=p+1&limit=50");
  expect(searchRequest("p1", { ...NO_FILTER, words: "pier" }, 9)).toEqual({
    query: "pier",
    project: "p1",
    limit: 9,
  });
});

test("filters and cursor are part of the request", () => {
  const filter = { words: "pier", kind: "edit", agentSession: "a&b", pinned: true } as const;
  expect(listUrl("p", filter, 5, "c=")).toBe(
    "/v1/observations?project=p&limit=5&kind=edit&agentSession=a%26b&pinned=true&cursor=c%3D",
  );
  expect(searchRequest("p", filter, 5)).toEqual({
    ...{ query: "pier", project: "p", limit: 5, kind: "edit", agentSession: "a&b", pinned: true },
  });
});

test.each([
  ["the heading is the path", { path: "a.ts", content: "the whole file" }, "a.ts", true],
  ["the heading is the first nonblank line", { content: "\n  make test \nfailed" }, "make test", true],
  ["a single line has no more text", { content: "make test\n" }, "make test", false],
  ["a path without content has no more text", { path: "a.ts", content: " " }, "a.ts", false],
  ["an empty observation has no heading", { content: "" }, "", false],
])("observation: %s", (_, row, head, more) => {
  expect([headingOf(row), hasMore(row)]).toEqual([head, more]);
});

test("appendPage lists a repeated row once", () => {
  const rows = (...ids: string[]) => ids.map((id) => ({ id }) as Observation);
  expect(appendPage(rows("a", "b"), rows("b", "c"))).toEqual(rows("a", "b", "c"));
});
