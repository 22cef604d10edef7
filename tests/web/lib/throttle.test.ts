/** During continuous writes, the sync status stays current although it is updated only a few times. */

import { interval, Subject, takeUntil, timer } from "rxjs";
import { throttledUpdates } from "../../../web/src/lib/backoff.ts";

const LOOK_MS = 60;

test("continuous changes cause few updates, each with the current state", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const [state$, rows$] = [new Subject<string>(), new Subject<number>()];
  let [state, row, looking] = ["starting", -1, 0];
  const seen: { state: string; row: number }[] = [];
  const look = async () => {
    expect(++looking).toBe(1); // updates never overlap
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
  const firstLive = seen.find((one) => one.state === "live")!;
  expect(firstLive.row).toBeLessThan(40); // the state change was seen long before the writes ended
  expect(seen.length).toBeLessThanOrEqual(6);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(seen.at(-1)!.row).toBe(row);
  looks.unsubscribe();
});
