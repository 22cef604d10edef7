/** The service worker keeps the app on the device. A new version waits until somebody wants it: drafts are safe. */

import { registerSW } from "virtual:pwa-register";
import { Shared, useShared } from "./sharedState.ts";

const waits = new Shared(false);
let change: (() => Promise<void>) | undefined;

export function keepOnDevice(): void {
  change = registerSW({ immediate: true, onNeedRefresh: () => waits.set(true) });
}

/** Whether a newer version of the app is here and waits. */
export function useNewVersion(): boolean {
  return useShared(waits);
}

/** Loads the page anew with the version that waits. What is being written is kept (see drafts.ts). */
export async function changeVersion(): Promise<void> {
  await change?.();
}

/** Asks the server for a newer version; false: it has none, or does not answer. */
export async function lookForVersion(): Promise<boolean> {
  if (waits.value) return true;
  const registration = await navigator.serviceWorker?.getRegistration();
  const found = await registration?.update().catch(() => undefined);
  return Boolean(found?.installing ?? found?.waiting);
}
