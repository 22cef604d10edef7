/** Leave the account in all tabs: after sign-out, removal from this device or "forget everything". */

import { channelNames, lockNames } from "../lib/locks.ts";
import type { RemoteAccountApi } from "../client/backendClient.tsx";
import { clearLocalStorage } from "./drafts.ts";
import { SharedState, useSharedState } from "../client/sharedState.ts";

const otherTabs = new BroadcastChannel(channelNames.signOut);

otherTabs.onmessage = ({ data }: MessageEvent<string>) => location.replace(data);

/** Whether this tab runs "forget everything", or shows its receipt or error. */
const isForgetting = new SharedState(false);
let endForgetting = () => {};

/**
 * Set the account that this tab forgets, or null at the end. While an account is set, a lock keeps all
 * tabs from asking pages to reload for the erasure of deleted text.
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

/** Load the page with this path in all tabs. */
export function openInAllTabs(path: string): void {
  otherTabs.postMessage(path);
  location.assign(path);
}

/**
 * Remove the account from this device. First make all other tabs load the page with this path, because a tab with an
 * open account could write more rows.
 */
export async function wipe(api: RemoteAccountApi, path: string): Promise<void> {
  otherTabs.postMessage(path);
  const { userId } = await api.account();
  await api.removeFromDevice();
  clearLocalStorage(userId);
}
