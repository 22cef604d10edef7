import { SharedState, useSharedState } from "./sharedState.ts";

/**
 * Whether the server has erased the account. If true, no rows are shown, even if some are still on the
 * device.
 */
const isForgotten = new SharedState(false);

export function setForgotten(): void {
  isForgotten.set(true);
}

export function useIsForgotten(): boolean {
  return useSharedState(isForgotten);
}
