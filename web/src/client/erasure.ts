import { SharedState, useSharedState } from "./sharedState.ts";

/**
 * Whether the server has erased the account's data. If true, the page shows no rows, even if some are still on this
 * device.
 */
const isForgotten = new SharedState(false);

export function setForgotten(): void {
  isForgotten.set(true);
}

export function useIsForgotten(): boolean {
  return useSharedState(isForgotten);
}
