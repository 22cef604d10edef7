/** Unsaved text, kept so that it survives an update of the app or a closed page. */

import { useState } from "react";
import { removeOldDrafts, type Drafts } from "../client/drafts.ts";
import { lockNames } from "../lib/locks.ts";
import { newId } from "../core/schema/uuid7.ts";
import { nowAfter } from "../core/schema/timestamps.ts";
import { useAccountApi, type RemoteAccountApi } from "../client/backendClient.tsx";

/** Key of the stored receipt of the last "Forget everything" (see ui/memory/forgetProgress.ts). */
export const receiptKey = (userId: string) => `receipt ${userId}`;

/** sessionStorage key: the id of this tab, then the ids of its new chats that have only a draft, the latest first. */
const NEW = "new";
let tabIds: Promise<string[]> | undefined;

/** Return the ids of this tab. A duplicated tab starts with a copy of them; the original still holds the lock. */
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
 * Return the id for a new chat: that of a new chat with a draft in this tab, if there is one. The draft of a chat that
 * another device deleted moves to a new chat.
 */
export async function newConversationId(api: RemoteAccountApi, drafts: Drafts): Promise<string> {
  const draftIds = drafts.ids();
  const isDeletedById = new Map(draftIds[0] ? await api.sessionStates(draftIds) : []);
  const ids = await (tabIds ??= claimTabIds()); // no await below: the rest runs in one go
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

/** Return the draft with this id, or else `initial`, and its setter. Text that is empty or equals `initial` is no draft. */
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

/** Remove what localStorage has of an account that was removed from this device. */
export function clearLocalStorage(userId: string): void {
  localStorage.removeItem(receiptKey(userId));
  removeOldDrafts(userId);
}
