/** Detect that the browser cleared or closed the app's storage while the app was open. */

import { sleep } from "../../lib/sleep.ts";
import { isOnDevice } from "../../storage/accountDatabase.ts";
import type { AccountContext } from "./accountContext.ts";

/** Kind of loss. After `closed` the data still exists, and a reload of the page opens it again. */
export type StorageLoss = "cleared" | "closed";

/**
 * Wait before each check. Several checks are needed: a browser that clears data may still list the databases for some
 * seconds.
 */
const CHECK_AFTER_MS = [1_000, 3_000, 10_000, 30_000];
/**
 * Time limit of a check, because a database that is being cleared may never respond. After a timeout, the next check
 * decides.
 */
const CHECK_TIMEOUT_MS = 5_000;

/**
 * Call `listener` when the storage of the open account becomes unusable. A database that reopens by itself does not
 * count as lost. `closed` may be reported repeatedly, and `cleared` is final.
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
  if (database.closed) return null; // the app itself closed it, so nothing is lost
  // Check this first, because opening a deleted database below could recreate it.
  if (!(await exists(account.userId).catch(() => true))) return "cleared";
  const find = () => device.accounts.get(account.userId);
  // While the browser clears the database, Dexie may fail to open it. Dexie does not try again by itself, so try here.
  const storedAccount = await find()
    .catch(() => device.open().then(find))
    .catch(() => null); // the next check decides
  if (storedAccount === undefined) return "cleared";
  // This read fails if the database was closed, because RxDB does not reopen its databases.
  const reading = database.documents.storageInstance.findDocumentsById([""], false);
  return reading.then(
    () => null,
    () => (database.closed ? null : "closed"),
  );
}
