/** Leave the account in all tabs: after sign-out, removal from this device or "forget everything". */

import { channelNames, lockNames } from "../lib/locks.ts";
import type { RemoteAccountApi } from "../client/backendClient.tsx";
import { clearLocalStorage } from "./drafts.ts";
import { SharedState, useSharedState } from "../client/sharedState.ts";

const otherTabs = new BroadcastChannel(channelNames.signOut);

otherTabs.onmessage = ({ data }: MessageEvent<string>) => location.replace(data);

/** Whether this tab is running "forget everything". True until the receipt or error has been shown. */
const isForgetting = new SharedState(false);
let endForgetting = () => {};

/**
 * Set the account that this tab forgets, or null. While it is set, no page is asked to reload for an erasure.
 */
export function setForgetting(userId: string | null): void {
  endForgetting();
  endForgetting = () => {};
  isForgetting.set(userId !== null);
  if (userId === null) return;
  const ended = new Promise<void>((resolve) => (endForgetting = resolve));
  void navigator.locks.request(lockNames.forgetting(userId), { mode: "shared" }, () => ended);
}

export function useIsForgetting(): boolean {
  return useSharedState(isForgetting);
}

/** Load `path` in this tab and all others. */
export function openInAllTabs(path: string): void {
  otherTabs.postMessage(path);
  location.assign(path);
}

/**
 * Remove the account from this device. The other tabs load `path` first, because an open tab would write more
 * rows.
 */
export async function wipe(api: RemoteAccountApi, path: string): Promise<void> {
  otherTabs.postMessage(path);
  const { userId } = await api.account();
  await api.removeFromDevice();
  clearLocalStorage(userId);
}
