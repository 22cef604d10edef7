/** Text that somebody is writing: neither a new version of the app nor a phone that closes it takes it away. */

import { useState } from "react";
import { nowAfter } from "../model/time.ts";
import { useDesk } from "./desk.tsx";

const prefixOf = (userId: string) => `draft ${userId} `;
/** As drafts once were kept: whose they are, and of when, they do not tell. */
const isOld = (key: string) => /^draft [^ ]+$/u.test(key);

/** It is kept behind the time at which it was written, which has no blank. */
export function useDraft(id: string): [string, (text: string) => void] {
  const { account } = useDesk();
  const key = prefixOf(account.userId) + id;
  const old = `draft ${id}`;
  const [text, setText] = useState(
    () => localStorage.getItem(old) ?? textOf(localStorage.getItem(key), account.forgottenAt),
  );
  return [
    text,
    (changed) => {
      setText(changed);
      localStorage.removeItem(old);
      if (changed) localStorage.setItem(key, `${nowAfter(account.forgottenAt)} ${changed}`);
      else localStorage.removeItem(key);
    },
  ];
}

function textOf(kept: string | null, forgottenAt = ""): string {
  return kept === null || kept < forgottenAt ? "" : kept.slice(kept.indexOf(" ") + 1);
}

/** Those of one account: all, or what was written before everything was forgotten. */
export function forgetDrafts(userId: string, before?: string): void {
  for (const key of Object.keys(localStorage)) {
    if (isOld(key)) localStorage.removeItem(key);
    if (!key.startsWith(prefixOf(userId))) continue;
    if (before === undefined || localStorage.getItem(key)! < before) localStorage.removeItem(key);
  }
}
