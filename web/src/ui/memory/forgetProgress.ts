/**
 * The progress of "Forget everything", which continues when the user opens another page of the app. The receipt is
 * stored on this device until the user dismisses it. It is in Local Storage and not in the account's database, because
 * that database is deleted.
 */

import { useSyncExternalStore } from "react";
import { hasCode } from "../../core/errors.ts";
import type { ErasureReceipt } from "../../backend/api.ts";
import type { RemoteAccountApi } from "../../client/backendClient.tsx";
import { receiptKey } from "../drafts.ts";
import { setForgotten } from "../../client/erasure.ts";
import { openInAllTabs, setForgetting, wipe } from "../leaveAccount.ts";
import { errorMessage } from "../errorMessage.ts";
import { SharedState } from "../../client/sharedState.ts";

export interface ForgetResult {
  receipt: ErasureReceipt;
  /** State of the data on this device after the erasure. Do not rename this field: stored receipts have its name. */
  here: "isClean" | "isNotClean" | "isOpenElsewhere";
}

interface ForgetProgress {
  busy: boolean;
  problem?: string;
  result?: ForgetResult;
}

const state = new SharedState<ForgetProgress>({ busy: false });

export function useForgetProgress(): ForgetProgress {
  return useSyncExternalStore(subscribe, () => state.value);
}

export async function forget(api: RemoteAccountApi, userId: string): Promise<void> {
  setForgetting(userId);
  state.set({ busy: true });
  try {
    const receipt = await api.forgetEverything();
    setForgotten();
    // The server sends the receipt only once, so an error while data on this device is deleted must not hide it.
    const here = await wipe(api, "/sign-in").then(() => "isClean" as const, deviceStateAfter);
    const result = { receipt, here };
    storeReceipt(userId, result);
    state.set({ busy: false, result });
    if (!state.hasListeners) openInAllTabs("/memory"); // leave the open page, which still shows the erased data
  } catch (error) {
    state.set({ busy: false, problem: errorMessage(error) });
    if (!state.hasListeners) setForgetting(null);
  }
}

/** Store a result in Local Storage. If the browser refuses, the result is shown only until the page is reloaded. */
function storeReceipt(userId: string, result: ForgetResult): void {
  try {
    localStorage.setItem(receiptKey(userId), JSON.stringify(result));
  } catch (error) {
    console.error(error);
  }
}

/** Return the stored result, or undefined if there is none or the user has dismissed it. */
export function storedReceipt(userId: string): ForgetResult | undefined {
  const stored = localStorage.getItem(receiptKey(userId));
  return stored === null ? undefined : (JSON.parse(stored) as ForgetResult);
}

export function dismissReceipt(userId: string): void {
  localStorage.removeItem(receiptKey(userId));
}

/** Return the state of the data on this device after its deletion failed with `error`. */
function deviceStateAfter(error: unknown): ForgetResult["here"] {
  console.error(error);
  return hasCode(error, "OPEN_ELSEWHERE") ? "isOpenElsewhere" : "isNotClean";
}

/**
 * Subscribe to the state. When the user leaves the page, which unsubscribes the listener, reload the app if there is a
 * result, or else reset an error.
 */
function subscribe(listener: () => void): () => void {
  const unsubscribe = state.subscribe(listener);
  return () => {
    unsubscribe();
    if (state.value.busy) return;
    if (state.value.result) return location.reload();
    state.set({ busy: false });
    setForgetting(null);
  };
}
