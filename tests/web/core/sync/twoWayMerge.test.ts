/** Merge two versions of a row without a common base, as after a restore: only older texts are lost. */

import { mergeTwoWay } from "../../../../web/src/core/sync/twoWayMerge.ts";

const [OLD, NEW] = ["2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"];
const row = { id: "d", updatedAt: OLD, lastAccessedAt: OLD, activeSessions: ["a"], accessCount: 1 };

test("mergeTwoWay unites sets and keeps the larger counts and times", () => {
  const ours = { ...row, activeSessions: ["a", "ours"], accessCount: 3, lastAccessedAt: NEW };
  const theirs = { ...row, activeSessions: ["theirs", "a"], accessCount: 2, updatedAt: NEW };
  const united = mergeTwoWay(ours, theirs);
  expect(new Set(united["activeSessions"] as string[])).toEqual(new Set(["a", "ours", "theirs"]));
  expect(united).toMatchObject({ accessCount: 3, lastAccessedAt: NEW, updatedAt: NEW });
});

test("mergeTwoWay keeps the newer fields and, on a tie, the server's", () => {
  const [ours, theirs] = [
    { ...row, filename: "ours" },
    { ...row, filename: "theirs" },
  ];
  expect(mergeTwoWay({ ...ours, updatedAt: NEW }, theirs)["filename"]).toBe("ours");
  expect(mergeTwoWay(ours, { ...theirs, updatedAt: NEW })["filename"]).toBe("theirs");
  expect(mergeTwoWay(ours, theirs)["filename"]).toBe("theirs");
});

test("mergeTwoWay returns the server's row if it is deleted or rejected", () => {
  const ours = { ...row, updatedAt: NEW };
  for (const theirs of [
    { ...row, _deleted: true },
    { ...row, syncError: { code: "INVALID" } },
  ])
    expect(mergeTwoWay(ours, theirs)).toEqual(theirs);
});
