/** Signing out, removing the account from the device and forgetting everything: each concerns all tabs of the browser. */

import { forgettingLockName } from "../core/schema/storedSchemaVersion.ts";
import type { RemoteAccountApi } from "../client/backendClient.tsx";
import { clearLocalStorage } from "./drafts.ts";
import { SharedState, useSharedState } from "./sharedState.ts";

const otherTabs = new BroadcastChannel("vademecum-leaving");

otherTabs.onmessage = ({ data }: MessageEvent<string>) => location.replace(data);

/** True while this tab forgets everything, until its receipt or error has been shown. */
const isForgetting = new SharedState(false);
let endForgetting = () => {};

/** Set the account that this tab forgets, or null. Meanwhile no page is asked to reload for an erasure. */
export function setForgetting(userId: string | null): void {
  endForgetting();
  endForgetting = () => {};
  isForgetting.set(userId !== null);
  if (userId === null) return;
  const ended = new Promise<void>((resolve) => (endForgetting = resolve));
  void navigator.locks.request(forgettingLockName(userId), { mode: "shared" }, () => ended);
}

export function useIsForgetting(): boolean {
  return useSharedState(isForgetting);
}

/** True once the server has erased the account. From then on no rows are shown, even if some are still on the device. */
const isForgotten = new SharedState(false);

export function setForgotten(): void {
  isForgotten.set(true);
}

export function useIsForgotten(): boolean {
  return useSharedState(isForgotten);
}

/** Load `path` in this tab and all others. */
export function openInAllTabs(path: string): void {
  otherTabs.postMessage(path);
  location.assign(path);
}

/** Remove the account from this device. The other tabs load `path` first, because an open tab would go on writing rows. */
export async function wipe(api: RemoteAccountApi, path: string): Promise<void> {
  otherTabs.postMessage(path);
  const { userId } = await api.account();
  await api.removeFromDevice();
  clearLocalStorage(userId);
}
