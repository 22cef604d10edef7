/**
 * Load errors: whether a part of the app could not be loaded. The parts that are loaded keep working, so the user can
 * reload the page later.
 */

import { SharedState, useSharedState } from "../client/sharedState.ts";

const RESPONSE_TIMEOUT_MS = 10_000;

const hasLoadError = new SharedState(false);
let dismissedAt = -1;

/**
 * Report that loading a part of the app failed. Ignore the failure if the user has dismissed an error since the load
 * started at `startedAt`.
 */
export function reportLoadError(startedAt = performance.now()): void {
  if (startedAt > dismissedAt) hasLoadError.set(true);
}

export function dismissLoadError(): void {
  dismissedAt = performance.now();
  hasLoadError.set(false);
}

/** Return whether there is a load error that the user has not dismissed. */
export function useLoadError(): boolean {
  return useSharedState(hasLoadError);
}

/**
 * Reload the page and return true. If neither a service worker nor the server can provide the app, keep the page and
 * return false.
 */
export async function reloadIfAvailable(): Promise<boolean> {
  const registration = await navigator.serviceWorker?.getRegistration();
  const isAvailable = Boolean(registration?.active) || (await isServerResponding());
  if (isAvailable) location.reload();
  return isAvailable;
}

function isServerResponding(): Promise<boolean> {
  const init: RequestInit = { cache: "no-store", signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) };
  return fetch("/health", init).then(
    ({ ok }) => ok,
    () => false,
  );
}
