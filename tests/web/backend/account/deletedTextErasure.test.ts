/** While an erasure keeps failing, the app asks its pages to reload at growing intervals. */

import type { DeviceDatabase, DeviceAccount } from "../../../../web/src/storage/deviceDatabase.ts";
import { REQUEST_ERASURE_NOW } from "../../../../web/src/lib/locks.ts";
import { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { DeletedTextErasure } from "../../../../web/src/backend/account/deletedTextErasure.ts";
import type { TabCoordinator } from "../../../../web/src/backend/sync/tabCoordinator.ts";
import { openRows } from "../../device.ts";

const HOUR_MS = 3_600_000;

test("while an erasure keeps failing, pages are asked less often to reload", async () => {
  const row = {
    leftover: { since: "", deletes: 0, storages: ["*"], atOnce: true },
  } as unknown as DeviceAccount;
  const accounts = {
    get: async () => structuredClone(row),
    where: () => ({ modify: async (change: (row: DeviceAccount) => void) => change(row) }),
  };
  const context = new AccountContext(
    { userId: "u" } as DeviceAccount,
    await openRows(),
    { accounts } as unknown as DeviceDatabase,
    { base: "" },
  );
  const sync = {
    replicator: {},
    summary$: { value: { kind: "live", waiting: 0 } },
  } as unknown as TabCoordinator;
  const asked = vi.spyOn(BroadcastChannel.prototype, "postMessage");
  const timesAsked = () => asked.mock.calls.filter(([message]) => message === REQUEST_ERASURE_NOW).length;
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  vi.stubGlobal("navigator", { locks: { query: async () => ({ held: [] }) } }); // Node.js may lack navigator.locks
  onTestFinished(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
    asked.mockRestore();
  });
  const leftovers = new DeletedTextErasure(context, sync);
  onTestFinished(() => leftovers.stop());

  await vi.advanceTimersByTimeAsync(HOUR_MS / 30);
  expect(timesAsked()).toBeGreaterThanOrEqual(1);
  await vi.advanceTimersByTimeAsync(12 * HOUR_MS);
  expect(timesAsked()).toBeGreaterThanOrEqual(8);
  expect(timesAsked()).toBeLessThanOrEqual(12);
});
