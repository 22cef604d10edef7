/** What the browser took from under the app, or closed, while it was open. */

import { pause } from "../../lib/sleep.ts";
import { isOnDevice } from "../../storage/accountDatabase.ts";
import type { House } from "./accountContext.ts";

/** `closed`: all of it is still there, and is opened again when the app is loaded anew. */
export type StorageLoss = "cleared" | "closed";

/** While a browser clears, it may still show what it is about to take, for seconds where much else is going on. */
const LOOK_AFTER_MS = [1_000, 3_000, 10_000, 30_000];
/** What is being cleared may not answer at all: then the next look tells. */
const LOOK_MS = 5_000;

/**
 * Tells when the app cannot go on with what it has open; what opens again by itself is no loss. `cleared` is the last
 * word. `closed` may become it: what is still there at the first look may be gone at the next.
 */
export function watchTaken(house: House, listener: (loss: StorageLoss) => void, isThere = isOnDevice): void {
  house.device.watchClosed(async () => {
    for (const after of LOOK_AFTER_MS) {
      await pause(after);
      const loss = await Promise.race([look(house, isThere), pause(LOOK_MS)]);
      if (loss) listener(loss);
      if (loss === "cleared") return;
    }
  });
}

async function look(
  { account, device, records }: House,
  isThere: typeof isOnDevice,
): Promise<StorageLoss | null> {
  if (records.closed) return null; // the app was left
  if (!(await isThere(account.userId).catch(() => true))) return "cleared"; // what is opened below may be made anew
  const find = () => device.accounts.get(account.userId);
  // What could not be opened once, as while a browser clears it, Dexie does not open again by itself.
  const isKnown = await find()
    .catch(() => device.open().then(find))
    .catch(() => null); // the next look tells
  if (isKnown === undefined) return "cleared";
  const reading = records.documents.storageInstance.findDocumentsById([""], false); // RxDB opens none of its own anew
  return reading.then(
    () => null,
    () => (records.closed ? null : "closed"),
  );
}
