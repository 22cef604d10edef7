/** Requests of other tabs to reload this one: a newer version waits until no tab of an older one has the account open. */

import { useEffect, useState } from "react";
import { channelNames, REQUEST_ERASURE, REQUEST_ERASURE_NOW } from "../lib/locks.ts";
import { useAccountApi } from "../client/backendClient.tsx";

/** The other tab repeats its request more often than this. Without a repetition it is gone. */
const REQUEST_TTL_MS = 3_000;
/** Fields whose text may not be saved yet. */
const FIELDS = "textarea, input:not([readonly], [type=checkbox], [type=radio], [type=file], [type=hidden])";

/** Reload the page on request if nothing would be lost. Otherwise return true for as long as it is requested. */
export function useReloadRequest(): boolean {
  const { api, account } = useAccountApi();
  const { userId } = account;
  const [isRequested, setRequested] = useState(false);
  useEffect(() => {
    const otherTabs = new BroadcastChannel(channelNames.reload(userId));
    let expiry: ReturnType<typeof setTimeout> | undefined;
    otherTabs.onmessage = async ({ data }: MessageEvent) => {
      const isErasure = data === REQUEST_ERASURE || data === REQUEST_ERASURE_NOW;
      if (data === REQUEST_ERASURE && !document.hidden) return;
      if (!(await api.isBusy()) && !hasUnsavedInput()) return location.reload();
      if (isErasure) return; // the text is erased when the app opens the next time
      setRequested(true);
      clearTimeout(expiry);
      expiry = setTimeout(() => setRequested(false), REQUEST_TTL_MS);
    };
    return () => {
      otherTabs.close();
      clearTimeout(expiry);
    };
  }, [api, userId]);
  return isRequested;
}

/** Return whether a field has text that is not stored as a draft. */
function hasUnsavedInput(): boolean {
  const fields = document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(FIELDS);
  return [...fields].some(
    (field) => field.value !== "" && !field.closest("[data-draft], [aria-hidden=true]"),
  );
}
