/** Drafts: unsaved text, kept in localStorage so that it survives an update of the app or a closed page. */

import { useState } from "react";
import { newId } from "../core/schema/uuid7.ts";
import { nowAfter } from "../core/schema/timestamps.ts";
import { useAccountApi, type RemoteAccountApi } from "../client/backendClient.tsx";

const prefixOf = (userId: string) => `draft ${userId} `;
/** Key of the stored receipt of the last "Forget everything" (see ui/memory/forgetProgress.ts). */
export const receiptKey = (userId: string) => `receipt ${userId}`;

/** sessionStorage key: the id of this tab, then the ids of its new chats that have only a draft, the latest first. */
const NEW = "new";
let tabIds: Promise<string[]> | undefined;

/** Return the ids of this tab. A duplicated tab starts with a copy of them; the original still holds the lock. */
async function claimTabIds(): Promise<string[]> {
  const ids = sessionStorage.getItem(NEW)?.split(" ") ?? [newId()];
  const isOwner = await new Promise((resolve) => {
    void navigator.locks.request(`vademecum-tab-${ids[0]}`, { ifAvailable: true }, (lock) => {
      resolve(lock);
      return lock && new Promise(() => {}); // hold the lock until the tab is closed
    });
  });
  if (isOwner) return ids;
  sessionStorage.removeItem(NEW);
  return claimTabIds();
}

/**
 * Return the id for a new chat: that of a new chat with a draft in this tab, if there is one. The draft of a chat that
 * another device deleted moves to a new chat.
 */
export async function newConversationId(api: RemoteAccountApi, userId: string): Promise<string> {
  const prefix = prefixOf(userId);
  const draftKeys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  const draftIds = draftKeys.map((key) => key.slice(prefix.length));
  const isDeletedById = new Map(draftIds[0] ? await api.sessionStates(draftIds) : []);
  const ids = await (tabIds ??= claimTabIds()); // no await below: the rest runs in one go
  for (const [id, isDeleted] of isDeletedById) {
    const draft = isDeleted && localStorage.getItem(prefix + id);
    if (!draft) continue;
    const movedTo = newId();
    localStorage.setItem(prefix + movedTo, draft);
    localStorage.removeItem(prefix + id);
    ids.splice(1, 0, movedTo);
  }
  const unsent = ids.slice(1).filter((id) => hasDraft(userId, id) && !isDeletedById.has(id));
  const [id = newId()] = unsent;
  ids.splice(1, ids.length, ...new Set([id, ...unsent]));
  sessionStorage.setItem(NEW, ids.join(" "));
  return id;
}

/** Return a text and its setter. It is stored as "<time> <text>" unless it is empty or equals `initial`. */
export function useDraft(id: string, initial = ""): [string, (text: string) => void] {
  const { account } = useAccountApi();
  const key = prefixOf(account.userId) + id;
  const [text, setText] = useState(() => textOf(localStorage.getItem(key), account.forgottenAt) || initial);
  return [
    text,
    (changed) => {
      setText(changed);
      if (changed && changed !== initial)
        localStorage.setItem(key, `${nowAfter(account.forgottenAt)} ${changed}`);
      else localStorage.removeItem(key);
    },
  ];
}

/** Return the text of a stored draft, or "" if there is none or it is older than `forgottenAt`. */
function textOf(draft: string | null, forgottenAt = ""): string {
  return draft === null || draft < forgottenAt ? "" : draft.slice(draft.indexOf(" ") + 1);
}

/** Return whether a chat or form has a draft. */
export function hasDraft(userId: string, id: string, forgottenAt?: string): boolean {
  return textOf(localStorage.getItem(prefixOf(userId) + id), forgottenAt) !== "";
}

export function deleteDraft(userId: string, id: string): void {
  localStorage.removeItem(prefixOf(userId) + id);
}

/** Delete the drafts of an account: those written before a time, or all of them and its receipt. */
export function deleteDrafts(userId: string, before?: string): void {
  if (before === undefined) localStorage.removeItem(receiptKey(userId));
  for (const key of Object.keys(localStorage)) {
    if (!key.startsWith(prefixOf(userId))) continue;
    if (before === undefined || localStorage.getItem(key)! < before) localStorage.removeItem(key);
  }
}
