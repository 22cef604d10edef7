/** The delay before a temporarily rejected request is retried. */

import { retryDelayMs } from "../../../../web/src/lib/backoff.ts";

test.each([
  [0, undefined, 5_000],
  [1, undefined, 10_000],
  [3, undefined, 40_000],
  [60, undefined, 600_000],
  [0, 30, 30_000],
  [4, 30, 80_000],
  [0, 7_200, 600_000],
])("after %i failures with Retry-After %s s, the delay is %i ms", (tries, retryAfterS, ms) => {
  expect(retryDelayMs(tries, retryAfterS)).toBe(ms);
});
