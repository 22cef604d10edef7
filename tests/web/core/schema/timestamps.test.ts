/** When a new row was made, also by a clock that is behind; and what is a time at all. */

import { isTimestamp, nowAfter } from "../../../../web/src/core/schema/timestamps.ts";

const NOON = "2026-11-20T12:00:00.000Z";

test.each([
  ["nothing was ever forgotten", undefined, NOON],
  ["it was before", "2026-11-20T11:59:59.999Z", NOON],
  ["it is this moment", NOON, "2026-11-20T12:00:00.001Z"],
  ["the clock is behind", "2026-11-20T14:02:00.000Z", "2026-11-20T14:02:00.001Z"],
])("%s", (_, forgottenAt, expected) => {
  expect(nowAfter(forgottenAt, Date.parse(NOON))).toBe(expected);
});

test.each([
  [NOON, true],
  ["2026-02-30T00:00:00.000Z", false],
  ["2026-11-20T12:00:60.000Z", false],
  ["2026-11-20", false],
  ["yesterday", false],
  [undefined, false],
])("whether %s is a time", (value, expected) => {
  expect(isTimestamp(value)).toBe(expected);
});
