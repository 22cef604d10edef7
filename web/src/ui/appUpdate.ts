/**
 * Updates of the app. The service worker downloads a new version, which waits until the user applies it. What the
 * service worker caches is set in web/serviceWorker.ts (`workbox`).
 */

import { registerSW } from "virtual:pwa-register";
import { SharedState, useSharedState } from "../client/sharedState.ts";

const updateReady = new SharedState(false);
let update: (() => Promise<void>) | undefined;

export function registerServiceWorker(): void {
  update = registerSW({ immediate: true, onNeedRefresh: () => updateReady.set(true) });
}

/** Return whether a new version has been downloaded and can be applied. */
export function useUpdateReady(): boolean {
  return useSharedState(updateReady);
}

/** Reload the page with the new version. Drafts survive the reload (see drafts.ts). */
export async function applyUpdate(): Promise<void> {
  await update?.();
}

/** Ask the server for a new version. Return false if the server has no new version or does not respond. */
export async function checkForUpdate(): Promise<boolean> {
  if (updateReady.value) return true;
  const registration = await navigator.serviceWorker?.getRegistration();
  const updated = await registration?.update().catch(() => undefined);
  return Boolean(updated?.installing ?? updated?.waiting);
}
