/**
 * Reload requests of other tabs. A tab with a newer version waits until no tab with an older one has the
 * account open.
 */

import { useEffect, useState } from "react";
import { channelNames, REQUEST_ERASURE, REQUEST_ERASURE_NOW } from "../lib/locks.ts";
import { useAccountApi } from "../client/backendClient.tsx";

/**
 * Lifetime of a request. The other tab repeats its request more often, so without a repetition that tab is
 * closed.
 */
const REQUEST_TTL_MS = 3_000;
/** Selector of fields whose text may not be saved yet. */
const FIELDS = "textarea, input:not([readonly], [type=checkbox], [type=radio], [type=file], [type=hidden])";

/**
 * Reload the page on request if no text would be lost. Otherwise return true as long as the request lasts.
 */
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
