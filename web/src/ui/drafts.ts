/** Text that somebody is writing: neither a new version of the app nor a phone that closes it takes it away. */

import { useState } from "react";
import { newId } from "../core/schema/uuid7.ts";
import { nowAfter } from "../core/schema/timestamps.ts";
import { useAccountApi, type RemoteAccountApi } from "../client/backendClient.tsx";

const prefixOf = (userId: string) => `draft ${userId} `;
/** Beside the drafts of an account: what came of the last "forget everything" (see ui/memory/forgetProgress.ts). */
export const receiptKey = (userId: string) => `receipt ${userId}`;

/** Of this tab: what its lock is named after, and its new conversations that are nothing but a draft, the last first. */
const NEW = "new";
let own: Promise<string[]> | undefined;

/** A tab that is duplicated begins with a copy of what the other keeps, which still holds the lock. */
async function ownNew(): Promise<string[]> {
  const kept = sessionStorage.getItem(NEW)?.split(" ") ?? [newId()];
  const isOurs = await new Promise((resolve) => {
    void navigator.locks.request(`vademecum-tab-${kept[0]}`, { ifAvailable: true }, (lock) => {
      resolve(lock);
      return lock && new Promise(() => {}); // until this tab goes
    });
  });
  if (isOurs) return kept;
  sessionStorage.removeItem(NEW);
  return ownNew();
}

/**
 * The id of a conversation that is to begin: of one of which this tab has a draft already, if there is one. What was not
 * sent in a conversation that another device deleted is such a draft, too.
 */
export async function newConversation(api: RemoteAccountApi, userId: string): Promise<string> {
  const prefix = prefixOf(userId);
  const drafts = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  const ids = drafts.map((key) => key.slice(prefix.length));
  const known = new Map(ids[0] ? await api.sessionStates(ids) : []);
  const kept = await (own ??= ownNew()); // from here on nobody else is at it
  for (const [id, isDeleted] of known) {
    const draft = isDeleted && localStorage.getItem(prefix + id);
    if (!draft) continue;
    const next = newId();
    localStorage.setItem(prefix + next, draft);
    localStorage.removeItem(prefix + id);
    kept.splice(1, 0, next);
  }
  const left = kept.slice(1).filter((id) => hasDraft(userId, id) && !known.has(id));
  const [id = newId()] = left;
  kept.splice(1, kept.length, ...new Set([id, ...left]));
  sessionStorage.setItem(NEW, kept.join(" "));
  return id;
}

/** It is kept behind the time at which it was written, which has no blank. `given`: what there is to change. */
export function useDraft(id: string, given = ""): [string, (text: string) => void] {
  const { account } = useAccountApi();
  const key = prefixOf(account.userId) + id;
  const [text, setText] = useState(() => textOf(localStorage.getItem(key), account.forgottenAt) || given);
  return [
    text,
    (changed) => {
      setText(changed);
      if (changed && changed !== given)
        localStorage.setItem(key, `${nowAfter(account.forgottenAt)} ${changed}`);
      else localStorage.removeItem(key);
    },
  ];
}

function textOf(kept: string | null, forgottenAt = ""): string {
  return kept === null || kept < forgottenAt ? "" : kept.slice(kept.indexOf(" ") + 1);
}

/** Whether something is kept that was not sent in this conversation, or not stored of this form. */
export function hasDraft(userId: string, id: string, forgottenAt?: string): boolean {
  return textOf(localStorage.getItem(prefixOf(userId) + id), forgottenAt) !== "";
}

/** That of a conversation that is deleted on this device, or of a form that is closed. */
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
