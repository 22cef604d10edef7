/** When a new row was made, also by a clock that is behind. */

import { nowAfter } from "../../web/src/model/time.ts";

const NOON = "2026-11-20T12:00:00.000Z";

test.each([
  ["nothing was ever forgotten", undefined, NOON],
  ["it was before", "2026-11-20T11:59:59.999Z", NOON],
  ["it is this moment", NOON, "2026-11-20T12:00:00.001Z"],
  ["the clock is behind", "2026-11-20T14:02:00.000Z", "2026-11-20T14:02:00.001Z"],
])("%s", (_, forgottenAt, expected) => {
  expect(nowAfter(forgottenAt, Date.parse(NOON))).toBe(expected);
});
