/** What the line about sync says follows the sync, however much is being written, and does not count all the time. */

import { interval, Subject, takeUntil, timer } from "rxjs";
import { throttledUpdates } from "../../../web/src/lib/backoff.ts";

const LOOK_MS = 60;

test("while rows change all the time the state is told, the last change is seen, and looks are few", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const [state$, rows$] = [new Subject<string>(), new Subject<number>()];
  let [state, row, looking] = ["starting", -1, 0];
  const seen: { state: string; row: number }[] = [];
  const look = async () => {
    expect(++looking).toBe(1); // one at a time
    seen.push({ state, row });
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    looking--;
  };
  const looks = throttledUpdates(state$, rows$, look).subscribe();
  interval(20)
    .pipe(takeUntil(timer(2_000)))
    .subscribe((n) => rows$.next((row = n)));
  setTimeout(() => state$.next((state = "live")), 220);
  await vi.advanceTimersByTimeAsync(2_000);
  const told = seen.find((one) => one.state === "live")!;
  expect(told.row).toBeLessThan(40); // long before the rows are quiet
  expect(seen.length).toBeLessThanOrEqual(6);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(seen.at(-1)!.row).toBe(row);
  looks.unsubscribe();
});
