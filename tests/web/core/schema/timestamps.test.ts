/** Creation times of new rows, also on a device whose clock is behind, and the validation of timestamps. */

import { isTimestamp, nowAfter } from "../../../../web/src/core/schema/timestamps.ts";

const NOON = "2026-11-20T12:00:00.000Z";

test.each([
  ["without forget everything, the current time", undefined, NOON],
  ["after forget everything, the current time", "2026-11-20T11:59:59.999Z", NOON],
  ["at the same moment, one millisecond later", NOON, "2026-11-20T12:00:00.001Z"],
  ["with a clock behind, one millisecond later", "2026-11-20T14:02:00.000Z", "2026-11-20T14:02:00.001Z"],
])("nowAfter: %s", (_, forgottenAt, expected) => {
  expect(nowAfter(forgottenAt, Date.parse(NOON))).toBe(expected);
});

test.each([
  [NOON, true],
  ["2026-02-30T00:00:00.000Z", false],
  ["2026-11-20T12:00:60.000Z", false],
  ["2026-11-20", false],
  ["yesterday", false],
  [undefined, false],
])("isTimestamp(%s) is %s", (value, expected) => {
  expect(isTimestamp(value)).toBe(expected);
});
