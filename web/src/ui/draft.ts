/** Text that somebody is writing: neither a new version of the app nor a phone that closes it takes it away. */

import { useState } from "react";
import { nowAfter } from "../model/time.ts";
import { useDesk } from "./desk.tsx";

const prefixOf = (userId: string) => `draft ${userId} `;
/** Beside the drafts of an account: what came of the last "forget everything" (see memory/forgetting.ts). */
export const receiptKey = (userId: string) => `receipt ${userId}`;

/** It is kept behind the time at which it was written, which has no blank. */
export function useDraft(id: string): [string, (text: string) => void] {
  const { account } = useDesk();
  const key = prefixOf(account.userId) + id;
  const [text, setText] = useState(() => textOf(localStorage.getItem(key), account.forgottenAt));
  return [
    text,
    (changed) => {
      setText(changed);
      if (changed) localStorage.setItem(key, `${nowAfter(account.forgottenAt)} ${changed}`);
      else localStorage.removeItem(key);
    },
  ];
}

function textOf(kept: string | null, forgottenAt = ""): string {
  return kept === null || kept < forgottenAt ? "" : kept.slice(kept.indexOf(" ") + 1);
}

/** That of a conversation that is deleted. */
export function forgetDraft(userId: string, id: string): void {
  localStorage.removeItem(prefixOf(userId) + id);
}

/** Those of one account: all, with its receipt, or what was written before everything was forgotten. */
export function forgetDrafts(userId: string, before?: string): void {
  if (before === undefined) localStorage.removeItem(receiptKey(userId));
  for (const key of Object.keys(localStorage)) {
    if (!key.startsWith(prefixOf(userId))) continue;
    if (before === undefined || localStorage.getItem(key)! < before) localStorage.removeItem(key);
  }
}
