/** Detect that the browser cleared or closed the app's storage while the app was open. */

import { sleep } from "../../lib/sleep.ts";
import { isOnDevice } from "../../storage/accountDatabase.ts";
import type { AccountContext } from "./accountContext.ts";

/** Kind of loss. After `closed` the data still exists, and a reload opens it again. */
export type StorageLoss = "cleared" | "closed";

/** Delays of the checks. A browser that clears data may still list the databases for some seconds. */
const CHECK_AFTER_MS = [1_000, 3_000, 10_000, 30_000];
/**
 * Time limit of a check, because a database that is being cleared may never respond. The next check decides
 * then.
 */
const CHECK_TIMEOUT_MS = 5_000;

/**
 * Call `listener` when the open storage became unusable. A database that reopens by itself is no loss. `closed` may be
 * followed by `cleared`, which is final.
 */
export function watchStorageLoss(
  context: AccountContext,
  listener: (loss: StorageLoss) => void,
  exists = isOnDevice,
): void {
  context.device.watchClosed(async () => {
    for (const delay of CHECK_AFTER_MS) {
      await sleep(delay);
      const loss = await Promise.race([detectLoss(context, exists), sleep(CHECK_TIMEOUT_MS)]);
      if (loss) listener(loss);
      if (loss === "cleared") return;
    }
  });
}

async function detectLoss(
  { account, device, database }: AccountContext,
  exists: typeof isOnDevice,
): Promise<StorageLoss | null> {
  if (database.closed) return null; // the app was closed
  // Check this first, because opening a deleted database below could recreate it.
  if (!(await exists(account.userId).catch(() => true))) return "cleared";
  const find = () => device.accounts.get(account.userId);
  // Dexie does not reopen a database that failed to open, as while the browser clears it.
  const isKnown = await find()
    .catch(() => device.open().then(find))
    .catch(() => null); // the next check decides
  if (isKnown === undefined) return "cleared";
  const reading = database.documents.storageInstance.findDocumentsById([""], false); // RxDB does not reopen its databases
  return reading.then(
    () => null,
    () => (database.closed ? null : "closed"),
  );
}
