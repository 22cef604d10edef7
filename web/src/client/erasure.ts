import { SharedState, useSharedState } from "./sharedState.ts";

/** True once the server has erased the account. From then on no rows are shown, even if some are still on the device. */
const isForgotten = new SharedState(false);

export function setForgotten(): void {
  isForgotten.set(true);
}

export function useIsForgotten(): boolean {
  return useSharedState(isForgotten);
}
