/** How often it is looked how the sync stands: soon after its state changes, and not after every row. */

import { auditTime, merge, throttle, type Observable } from "rxjs";

const SETTLE_MS = 150;
const ROWS_MS = 500;
/** What comes while `look` looks is looked at once more afterwards. */
const ONE_AT_A_TIME = { leading: true, trailing: true };

/** While rows change all the time it is looked all the same, twice a second: to look is to count what waits. */
export function throttledUpdates(
  state$: Observable<unknown>,
  rows$: Observable<unknown>,
  update: () => Promise<void>,
): Observable<unknown> {
  return merge(state$, rows$.pipe(auditTime(ROWS_MS))).pipe(
    auditTime(SETTLE_MS),
    throttle(() => update(), ONE_AT_A_TIME),
  );
}
