/**
 * The progress of "Forget everything", which continues when the user changes the page. The receipt is stored
 * on this device until the user has read it, apart from the account, which may be gone
 * by that time.
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
  /** State of the data on this device after the erasure. The field name is part of the stored format. */
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
    // The server has erased the data and sends its receipt only once, so an error on this device must not hide it.
    const here = await wipe(api, "/sign-in").then(() => "isClean" as const, deviceStateAfter);
    const result = { receipt, here };
    storeReceipt(userId, result);
    state.set({ busy: false, result });
    if (!state.hasListeners) openInAllTabs("/memory"); // the open page shows deleted data
  } catch (error) {
    state.set({ busy: false, problem: errorMessage(error) });
    if (!state.hasListeners) setForgetting(null);
  }
}

/** Store a result. If the browser refuses to store it, it is shown only once. */
function storeReceipt(userId: string, result: ForgetResult): void {
  try {
    localStorage.setItem(receiptKey(userId), JSON.stringify(result));
  } catch (error) {
    console.error(error);
  }
}

/** Return the last result if the user has not dismissed it. */
export function storedReceipt(userId: string): ForgetResult | undefined {
  const stored = localStorage.getItem(receiptKey(userId));
  return stored === null ? undefined : (JSON.parse(stored) as ForgetResult);
}

export function dismissReceipt(userId: string): void {
  localStorage.removeItem(receiptKey(userId));
}

/** Return the state of the device after an error. */
function deviceStateAfter(error: unknown): ForgetResult["here"] {
  console.error(error);
  return hasCode(error, "OPEN_ELSEWHERE") ? "isOpenElsewhere" : "isNotClean";
}

/** Subscribe to the state. When the user leaves the page, reset an error, and reload the app after a receipt. */
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
