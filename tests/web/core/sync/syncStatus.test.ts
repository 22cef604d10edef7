/** What is told to who listens, next to the line about sync. */

import { besides, headline, told, type Said, type Told } from "../../../../web/src/core/sync/syncStatus.ts";

/** What is heard at each step, from the first on. */
function heard(first: Said, ...then: Said[]): string[] {
  let now: Told = { said: first, holds: true };
  return then.map((said) => {
    now = told(now, said);
    return now.holds ? now.said : "";
  });
}

const known = {
  kind: "live",
  waiting: 0,
  syncedAt: "2026-05-02T00:00:00.000Z",
  refused: [],
  lost: 0,
} as const;
const line = (change: object) => {
  const all = { ...known, ...change };
  return [headline(all), ...besides(all)].map(({ said, n }) => `${said} ${n}`);
};

test("nothing that waits, was refused or is kept here is hidden behind another", () => {
  expect(line({})).toEqual(["synced 0"]);
  expect(line({ waiting: 3, lost: 1 })).toEqual(["sending 3", "lost 1"]);
  expect(line({ refused: ["documents", "facts"], waiting: 3, lost: 1 })).toEqual([
    ...["only-here 1", "refused 1", "sending 3", "lost 1"],
  ]);
  expect(line({ kind: "offline", waiting: 3, lost: 1 })).toEqual(["offline 3", "lost 1"]);
});

test("what stands is told at once, and what hinders as well", () => {
  expect(heard("starting", "synced", "offline", "signed-out")).toEqual(["synced", "offline", "signed-out"]);
});

test("a change that is sent at once is not heard of, nor that all is as before", () => {
  expect(heard("synced", "sending", "synced", "sending", "synced")).toEqual(["", "", "", ""]);
});

test("while something passes, nothing older is told; what comes of it is", () => {
  expect(heard("starting", "never", "sending", "synced")).toEqual(["", "", "synced"]);
});

test("what has lasted and was told is followed by what comes of it", () => {
  expect(heard("sending", "sending", "synced")).toEqual(["sending", "synced"]);
});
