/**
 * "Forget everything" while it goes on, whatever page is shown. What came of it is kept on this device until it has been
 * read: the account itself may be gone from here by then.
 */

import { useSyncExternalStore } from "react";
import { isCoded } from "../../core/errors.ts";
import type { ErasureReceipt } from "../../backend/account/forgetEverything.ts";
import type { RemoteAccountApi } from "../../client/backendClient.tsx";
import { receiptKey } from "../drafts.ts";
import { leaveTo, setForgetting, setForgotten, wipe } from "../leaveAccount.ts";
import { said } from "../errorMessage.ts";
import { Shared } from "../sharedState.ts";

export interface Done {
  receipt: ErasureReceipt;
  /** What is to be said of this device. */
  here: "isClean" | "isNotClean" | "isOpenElsewhere";
}

interface Forgetting {
  busy: boolean;
  problem?: string;
  done?: Done;
}

const state = new Shared<Forgetting>({ busy: false });

export function useForgetProgress(): Forgetting {
  return useSyncExternalStore(listen, () => state.value);
}

export async function forget(api: RemoteAccountApi, userId: string): Promise<void> {
  setForgetting(userId);
  state.set({ busy: true });
  try {
    const receipt = await api.forgetEverything();
    setForgotten();
    // Whatever holds the device up: the server has erased, and this is told once.
    const here = await wipe(api, "/sign-in").then(() => "isClean" as const, unclean);
    const done = { receipt, here };
    keep(userId, done);
    state.set({ busy: false, done });
    if (!state.isShown) leaveTo("/memory"); // nothing is left of the page that is shown instead
  } catch (error) {
    state.set({ busy: false, problem: said(error) });
    if (!state.isShown) setForgetting(null);
  }
}

/** A browser that keeps nothing for us shows it once. */
function keep(userId: string, done: Done): void {
  try {
    localStorage.setItem(receiptKey(userId), JSON.stringify(done));
  } catch (error) {
    console.error(error);
  }
}

/** The last receipt that nobody has put away. */
export function keptReceipt(userId: string): Done | undefined {
  const kept = localStorage.getItem(receiptKey(userId));
  return kept === null ? undefined : (JSON.parse(kept) as Done);
}

export function putAway(userId: string): void {
  localStorage.removeItem(receiptKey(userId));
}

/** Closing the other tab helps only where one is open. */
function unclean(error: unknown): Done["here"] {
  console.error(error);
  return isCoded(error, "OPEN_ELSEWHERE") ? "isOpenElsewhere" : "isNotClean";
}

/** Who goes elsewhere has read what went wrong, and finds all of it anew. */
function listen(listener: () => void): () => void {
  const stop = state.subscribe(listener);
  return () => {
    stop();
    if (state.value.busy) return;
    if (state.value.done) return location.reload();
    state.set({ busy: false });
    setForgetting(null);
  };
}
