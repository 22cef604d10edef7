/** What the browser took from under the app, or closed, while it was open. */

import { sleep } from "../../lib/sleep.ts";
import { isOnDevice } from "../../storage/accountDatabase.ts";
import type { AccountContext } from "./accountContext.ts";

/** `closed`: all of it is still there, and is opened again when the app is loaded anew. */
export type StorageLoss = "cleared" | "closed";

/** While a browser clears, it may still show what it is about to take, for seconds where much else is going on. */
const CHECK_AFTER_MS = [1_000, 3_000, 10_000, 30_000];
/** What is being cleared may not answer at all: then the next look tells. */
const CHECK_TIMEOUT_MS = 5_000;

/**
 * Tells when the app cannot go on with what it has open; what opens again by itself is no loss. `cleared` is the last
 * word. `closed` may become it: what is still there at the first look may be gone at the next.
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
  if (database.closed) return null; // the app was left
  if (!(await exists(account.userId).catch(() => true))) return "cleared"; // what is opened below may be made anew
  const find = () => device.accounts.get(account.userId);
  // What could not be opened once, as while a browser clears it, Dexie does not open again by itself.
  const isKnown = await find()
    .catch(() => device.open().then(find))
    .catch(() => null); // the next look tells
  if (isKnown === undefined) return "cleared";
  const reading = database.documents.storageInstance.findDocumentsById([""], false); // RxDB opens none of its own anew
  return reading.then(
    () => null,
    () => (database.closed ? null : "closed"),
  );
}
