/** How what agents did is asked for and what it is called. */

import {
  appendPage,
  NO_FILTER,
  hasMore,
  headingOf,
  listUrl,
  searchRequest,
  type Observation,
} from "../../../../web/src/core/agents/observations.ts";

test("nothing is asked for by name but what is chosen", () => {
  expect(listUrl("p 1", NO_FILTER, 50, null)).toBe("/v1/observations?project=p+1&limit=50");
  expect(searchRequest("p1", { ...NO_FILTER, words: "pier" }, 9)).toEqual({
    query: "pier",
    project: "p1",
    limit: 9,
  });
});

test("what is chosen is asked for, and a page goes on where the last one ended", () => {
  const wanted = { words: "pier", kind: "edit", agentSession: "a&b", pinned: true } as const;
  expect(listUrl("p", wanted, 5, "c=")).toBe(
    "/v1/observations?project=p&limit=5&kind=edit&agentSession=a%26b&pinned=true&cursor=c%3D",
  );
  expect(searchRequest("p", wanted, 5)).toEqual({
    ...{ query: "pier", project: "p", limit: 5, kind: "edit", agentSession: "a&b", pinned: true },
  });
});

test.each([
  ["the file comes first", { path: "a.ts", content: "the whole file" }, "a.ts", true],
  ["else the first line that says something", { content: "\n  make test \nfailed" }, "make test", true],
  ["one line is all there is", { content: "make test\n" }, "make test", false],
  ["a file and no words", { path: "a.ts", content: " " }, "a.ts", false],
  ["nothing", { content: "" }, "", false],
])("%s", (_, row, head, more) => {
  expect([headingOf(row), hasMore(row)]).toEqual([head, more]);
});

test("a row that comes again on the next page is listed once, where it was", () => {
  const rows = (...ids: string[]) => ids.map((id) => ({ id }) as Observation);
  expect(appendPage(rows("a", "b"), rows("b", "c"))).toEqual(rows("a", "b", "c"));
});
