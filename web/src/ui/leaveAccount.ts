/** Who signs out or wipes in one tab does it in all: no other tab may go on writing rows that are being removed. */

import { forgettingLockOf } from "../core/schema/storedSchemaVersion.ts";
import type { RemoteAccountApi } from "../client/backendClient.tsx";
import { forgetDrafts } from "./drafts.ts";
import { Shared, useShared } from "./sharedState.ts";

const others = new BroadcastChannel("vademecum-leaving");

others.onmessage = ({ data }: MessageEvent<string>) => location.replace(data);

/** True while this tab itself forgets everything, and has still to show the receipt, or what went wrong. */
const isForgetting = new Shared(false);
let endForgetting = () => {};

/** The account that this page forgets, or null. While it does, no page is asked to reload for an erasure. */
export function setForgetting(userId: string | null): void {
  endForgetting();
  endForgetting = () => {};
  isForgetting.set(userId !== null);
  if (userId === null) return;
  const ended = new Promise<void>((resolve) => (endForgetting = resolve));
  void navigator.locks.request(forgettingLockOf(userId), { mode: "shared" }, () => ended);
}

export function useIsForgetting(): boolean {
  return useShared(isForgetting);
}

/** From the moment that all is forgotten nothing of it is shown, whatever is still to be removed from here. */
const isForgotten = new Shared(false);

export function setForgotten(): void {
  isForgotten.set(true);
}

export function useIsForgotten(): boolean {
  return useShared(isForgotten);
}

/** Opens `path` anew here and in the other tabs. */
export function leaveTo(path: string): void {
  others.postMessage(path);
  location.assign(path);
}

/** Takes the account from this device. The other tabs go to `path` first: what they hold open is removed. */
export async function wipe(api: RemoteAccountApi, path: string): Promise<void> {
  others.postMessage(path);
  const { userId } = await api.account();
  await api.removeFromDevice();
  forgetDrafts(userId);
}
