/** What the browser took from under the app, or closed, while it was open. */

import type { House } from "./house.ts";

/** `closed`: all of it is still there, and is opened again when the app is loaded anew. */
export type Loss = "cleared" | "closed";

/** While a browser clears, it may still show what it is about to take. */
const SETTLE_MS = 1_000;

/** Resolves when the app cannot go on with what it has open. What opens again by itself is no loss. */
export function taken(house: House): Promise<Loss> {
  return new Promise((resolve) => {
    house.device.watchClosed(() => void look(house).then((loss) => loss && resolve(loss)));
  });
}

async function look({ account, device, records }: House): Promise<Loss | null> {
  if (records.closed) return null; // the app was left
  await new Promise((settled) => setTimeout(settled, SETTLE_MS));
  const isKnown = await device.accounts.get(account.userId).catch(() => null);
  if (isKnown === undefined) return "cleared";
  const reading = records.documents.storageInstance.findDocumentsById([""], false); // RxDB opens none of its own anew
  return reading.then(
    () => null,
    () => (records.closed ? null : "closed"),
  );
}
