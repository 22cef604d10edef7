/** Text that somebody is writing: neither a new version of the app nor a phone that closes it takes it away. */

import { useState } from "react";
import { newId } from "../model/ids.ts";
import { nowAfter } from "../model/time.ts";
import { useDesk, type AtDesk } from "./desk.tsx";

const prefixOf = (userId: string) => `draft ${userId} `;
/** Beside the drafts of an account: what came of the last "forget everything" (see memory/forgetting.ts). */
export const receiptKey = (userId: string) => `receipt ${userId}`;

/** Beside them, too: the id of the last new conversation. */
const newKey = (userId: string) => `new ${userId}`;

/** The last new conversation again, if all there is of it is a draft: who looks elsewhere meanwhile finds it here. */
export async function newConversation({ desk, account: { userId } }: AtDesk): Promise<string> {
  const last = localStorage.getItem(newKey(userId));
  const isDraft = last !== null && localStorage.getItem(prefixOf(userId) + last) !== null;
  if (isDraft && (await desk.rows("sessions", { selector: { id: last } })).length === 0) return last;
  const id = newId();
  localStorage.setItem(newKey(userId), id);
  return id;
}

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
  if (before === undefined) [receiptKey, newKey].forEach((key) => localStorage.removeItem(key(userId)));
  for (const key of Object.keys(localStorage)) {
    if (!key.startsWith(prefixOf(userId))) continue;
    if (before === undefined || localStorage.getItem(key)! < before) localStorage.removeItem(key);
  }
}
