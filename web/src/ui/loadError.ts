/** What is known of a part of the app that could not be loaded: the page goes on without it until it is loaded anew. */

import { Shared, useShared } from "./sharedState.ts";

/** A network that takes and gives nothing is none. */
const ANSWER_MS = 10_000;

const lacks = new Shared(false);
let putOffAt = -1;

/** Of several parts that were asked for together, those that fail after somebody has put it off are put off, too. */
export function tellUnloaded(askedAt = performance.now()): void {
  if (askedAt > putOffAt) lacks.set(true);
}

export function dismissUnloaded(): void {
  putOffAt = performance.now();
  lacks.set(false);
}

/** Whether a part could not be loaded, and nobody has put that off since. */
export function useLoadError(): boolean {
  return useShared(lacks);
}

/** False: neither this device has the app nor does the server answer, and this page would be lost for nothing. */
export async function loadAgain(): Promise<boolean> {
  const registration = await navigator.serviceWorker?.getRegistration();
  const isThere = Boolean(registration?.active) || (await answers());
  if (isThere) location.reload();
  return isThere;
}

function answers(): Promise<boolean> {
  const init: RequestInit = { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) };
  return fetch("/health", init).then(
    ({ ok }) => ok,
    () => false,
  );
}
