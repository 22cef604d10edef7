/** Drafts: unsaved texts that survive an update of the app or closing the page. */

import { useState } from "react";
import { removeOldDrafts, type Drafts } from "../client/drafts.ts";
import { lockNames } from "../lib/locks.ts";
import { newId } from "../core/schema/uuid7.ts";
import { nowAfter } from "../core/schema/timestamps.ts";
import { useAccountApi, type RemoteAccountApi } from "../client/backendClient.tsx";

/** Local Storage key of the receipt of the last "Forget everything" (see ui/memory/forgetProgress.ts). */
export const receiptKey = (userId: string) => `receipt ${userId}`;

/** Session Storage key of the id of this tab, followed by the ids of its chats with only a draft, the latest first. */
const NEW = "new";
let tabIds: Promise<string[]> | undefined;

/**
 * Return the ids that are stored under `NEW`. A duplicated tab starts with a copy of the original tab's ids. Since the
 * original tab holds the lock of the first id, the duplicate gets a new id.
 */
async function claimTabIds(): Promise<string[]> {
  const ids = sessionStorage.getItem(NEW)?.split(" ") ?? [newId()];
  const isOwner = await new Promise((resolve) => {
    void navigator.locks.request(lockNames.tab(ids[0]!), { ifAvailable: true }, (lock) => {
      resolve(lock);
      return lock && new Promise(() => {}); // hold the lock until the tab is closed
    });
  });
  if (isOwner) return ids;
  sessionStorage.removeItem(NEW);
  return claimTabIds();
}

/**
 * Return an id for a new chat. If this tab has a chat with only a draft, return the id of that chat. First, give each
 * draft of a deleted chat the id of a new chat.
 */
export async function newConversationId(api: RemoteAccountApi, drafts: Drafts): Promise<string> {
  const draftIds = drafts.ids();
  const isDeletedById = new Map(draftIds[0] ? await api.sessionStates(draftIds) : []);
  const ids = await (tabIds ??= claimTabIds()); // no await below, so that two calls cannot interleave
  for (const [id, isDeleted] of isDeletedById) {
    const draft = isDeleted && drafts.get(id);
    if (!draft) continue;
    const movedTo = newId();
    drafts.put({ ...draft, id: movedTo });
    drafts.delete(id);
    ids.splice(1, 0, movedTo);
  }
  const unsent = ids.slice(1).filter((id) => drafts.text(id) !== "" && !isDeletedById.has(id));
  const [id = newId()] = unsent;
  ids.splice(1, ids.length, ...new Set([id, ...unsent]));
  sessionStorage.setItem(NEW, ids.join(" "));
  return id;
}

/**
 * Return the text of the draft with this id, or `initial` without a draft, and a setter. The setter deletes the draft
 * if the text is empty or equal to `initial`.
 */
export function useDraft(id: string, initial = ""): [string, (text: string) => void] {
  const { account, drafts } = useAccountApi();
  const [text, setText] = useState(() => drafts.text(id, account.forgottenAt) || initial);
  return [
    text,
    (changed) => {
      setText(changed);
      if (changed && changed !== initial)
        drafts.put({ id, at: nowAfter(account.forgottenAt), text: changed });
      else drafts.delete(id);
    },
  ];
}

/** Remove the Local Storage entries of an account that was removed from this device. */
export function clearLocalStorage(userId: string): void {
  localStorage.removeItem(receiptKey(userId));
  removeOldDrafts(userId);
}
