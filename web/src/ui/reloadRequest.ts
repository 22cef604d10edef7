/**
 * Requests of other tabs to reload this page. A tab with a newer version of the app sends them until no tab with an
 * older version has the account open. A tab also sends one so that deleted text can be erased.
 */

import { useEffect, useState } from "react";
import { channelNames, REQUEST_ERASURE, REQUEST_ERASURE_NOW } from "../lib/locks.ts";
import { useAccountApi } from "../client/backendClient.tsx";

/**
 * Time after which a request expires. The requesting tab repeats its request at shorter intervals, so without a
 * repetition that tab was closed.
 */
const REQUEST_TTL_MS = 3_000;
/** Selector of fields that may contain unsaved text. */
const FIELDS = "textarea, input:not([readonly], [type=checkbox], [type=radio], [type=file], [type=hidden])";

/**
 * Reload the page at the request of another tab, if the reload loses no text and interrupts no work. Otherwise return
 * true until a request for a newer version expires.
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
      if (isErasure) return; // no prompt: the text is erased when the app is opened next
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

/** Return whether a field contains text that is not stored as a draft. */
function hasUnsavedInput(): boolean {
  const fields = document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(FIELDS);
  return [...fields].some(
    (field) => field.value !== "" && !field.closest("[data-draft], [aria-hidden=true]"),
  );
}
