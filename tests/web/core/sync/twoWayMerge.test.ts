/** Merge two versions of a row without a common base, as after a restore: only older texts are lost. */

import deletes from "../../../conformance/outdated_deletes.json";
import { mergeTwoWay } from "../../../../web/src/core/sync/twoWayMerge.ts";

const [OLD, NEW] = ["2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"];
const row = { id: "d", updatedAt: OLD, lastAccessedAt: OLD, activeSessions: ["a"], accessCount: 1 };

test("mergeTwoWay unites sets and keeps the larger counts and times", () => {
  const ours = { ...row, activeSessions: ["a", "ours"], accessCount: 3, lastAccessedAt: NEW };
  const theirs = { ...row, activeSessions: ["theirs", "a"], accessCount: 2, updatedAt: NEW };
  const united = mergeTwoWay(ours, theirs);
  expect(new Set(united["activeSessions"] as string[])).toEqual(new Set(["a", "ours", "theirs"]));
  expect(united).toMatchObject({
    accessCount: 3,
    lastAccessedAt: NEW,
    updatedAt: "2026-02-01T00:00:00.001Z",
  });
});

test("mergeTwoWay changes the time only if the row differs from both versions", () => {
  expect(mergeTwoWay(row, { ...row, accessCount: 2 })).toEqual({ ...row, accessCount: 2 });
  expect(mergeTwoWay({ ...row, updatedAt: NEW }, row)).toEqual({ ...row, updatedAt: NEW });
  const [ours, theirs] = [
    { ...row, activeSessions: ["ours"] },
    { ...row, activeSessions: ["theirs"] },
  ];
  expect(mergeTwoWay(ours, theirs)["updatedAt"]).toBe("2026-01-01T00:00:00.001Z");
});

test("mergeTwoWay keeps the last time that a timestamp can express", () => {
  const last = "9999-12-31T23:59:59.999Z";
  const ours = { ...row, updatedAt: last, activeSessions: ["ours"] };
  expect(mergeTwoWay(ours, { ...row, activeSessions: ["theirs"] })["updatedAt"]).toBe(last);
});

test("mergeTwoWay gives no advantage to a clock that is ahead", () => {
  const [ours, theirs] = [
    { ...row, filename: "ours", updatedAt: "2099-01-01T00:00:00.000Z" },
    { ...row, filename: "theirs", updatedAt: NEW },
  ];
  expect(mergeTwoWay(ours, theirs, NEW)["filename"]).toBe("theirs"); // a tie at the present
  expect(mergeTwoWay({ ...ours, updatedAt: NEW }, { ...theirs, updatedAt: OLD }, NEW)["filename"]).toBe(
    "ours",
  );
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

test.each(deletes)("mergeTwoWay, own delete: $name", ({ deletedAt, updatedAt, deletes: wins }) => {
  const ours = { ...row, activeSessions: [], updatedAt: deletedAt, _deleted: true };
  const theirs = { ...row, updatedAt };
  expect(mergeTwoWay(ours, theirs, "2026-06-01T00:00:00.000Z")).toEqual(wins ? ours : theirs);
});
