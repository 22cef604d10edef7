/** The texts of the sync status line, and its announcements to screen readers. */

import {
  mainStatus,
  nextAnnouncement,
  otherStatuses,
  type Announcement,
  type SyncStatus,
} from "../../../../web/src/core/sync/syncStatus.ts";

/** The announcement after each change of the status. An empty string: none. */
function announcements(first: SyncStatus, ...then: SyncStatus[]): string[] {
  let now: Announcement = { status: first, isCurrent: true };
  return then.map((status) => {
    now = nextAnnouncement(now, status);
    return now.isCurrent ? now.status : "";
  });
}

const facts = {
  kind: "live",
  waiting: 0,
  syncedAt: "2026-05-02T00:00:00.000Z",
  refused: [],
  lost: 0,
} as const;
const line = (change: object) => {
  const all = { ...facts, ...change };
  return [mainStatus(all), ...otherStatuses(all)].map(({ status, n }) => `${status} ${n}`);
};

test("the sync line shows every status that needs attention", () => {
  expect(line({})).toEqual(["synced 0"]);
  expect(line({ waiting: 3, lost: 1 })).toEqual(["sending 3", "lost 1"]);
  expect(line({ refused: ["documents", "facts"], waiting: 3, lost: 1 })).toEqual([
    ...["only-here 1", "refused 1", "sending 3", "lost 1"],
  ]);
  expect(line({ kind: "offline", waiting: 3, lost: 1 })).toEqual(["offline 3", "lost 1"]);
});

test("lasting and blocking statuses are announced at once", () => {
  expect(announcements("starting", "synced", "offline", "signed-out")).toEqual([
    "synced",
    "offline",
    "signed-out",
  ]);
});

test("a change that is sent immediately is not announced", () => {
  expect(announcements("synced", "sending", "synced", "sending", "synced")).toEqual(["", "", "", ""]);
});

test("a transient status withdraws the previous announcement", () => {
  expect(announcements("starting", "never", "sending", "synced")).toEqual(["", "", "synced"]);
});

test("the outcome of an announced status is announced", () => {
  expect(announcements("sending", "sending", "synced")).toEqual(["sending", "synced"]);
});
