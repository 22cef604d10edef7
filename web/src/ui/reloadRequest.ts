/** A tab with a newer version of the app waits until no tab of this one has the account open (see backend/account/accountLocks.ts). */

import { useEffect, useState } from "react";
import { askedOn, ERASE, ERASE_NOW } from "../core/schema/storedSchemaVersion.ts";
import { useAccountApi } from "../client/backendClient.tsx";

/** It asks so often that after this long it has gone. */
const GONE_MS = 3_000;
/** Where something may stand that is in no row yet. */
const FIELDS = "textarea, input:not([readonly], [type=checkbox], [type=radio], [type=file], [type=hidden])";

/** Loads the page anew when it is asked to and nothing gets lost; else true, for as long as it is asked. */
export function useReloadRequest(): boolean {
  const { api, account } = useAccountApi();
  const { userId } = account;
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    const others = new BroadcastChannel(askedOn(userId));
    let gone: ReturnType<typeof setTimeout> | undefined;
    others.onmessage = async ({ data }: MessageEvent) => {
      const isErasure = data === ERASE || data === ERASE_NOW;
      if (data === ERASE && !document.hidden) return;
      if (!(await api.isBusy()) && !isSomethingWritten()) return location.reload();
      if (isErasure) return; // it is erased when the app is next opened
      setAsked(true);
      clearTimeout(gone);
      gone = setTimeout(() => setAsked(false), GONE_MS);
    };
    return () => {
      others.close();
      clearTimeout(gone);
    };
  }, [api, userId]);
  return asked;
}

/** In a field, but for the one whose text is kept as a draft. */
function isSomethingWritten(): boolean {
  const fields = document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(FIELDS);
  return [...fields].some(
    (field) => field.value !== "" && !field.closest("[data-draft], [aria-hidden=true]"),
  );
}
