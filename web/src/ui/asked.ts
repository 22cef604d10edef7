/** A tab with a newer version of the app waits until no tab of this one has the account open (see presence.ts). */

import { useEffect, useRef, useState } from "react";
import { askedOn } from "../services/presence.ts";
import { useDesk, useWriting } from "./desk.tsx";

/** It asks so often that after this long it has gone. */
const GONE_MS = 3_000;
/** Where something may stand that is in no row yet. */
const FIELDS = "textarea, input:not([readonly], [type=checkbox], [type=radio], [type=file], [type=hidden])";

/** Loads the page anew when it is asked to and nothing gets lost; else true, for as long as it is asked. */
export function useAsked(): boolean {
  const { userId } = useDesk().account;
  const writing = useWriting();
  const isFree = useRef(false);
  isFree.current = writing !== undefined && Object.keys(writing).length === 0;
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    const others = askedOn(userId);
    let gone: ReturnType<typeof setTimeout> | undefined;
    others.onmessage = () => {
      if (isFree.current && !isSomethingWritten()) return location.reload();
      setAsked(true);
      clearTimeout(gone);
      gone = setTimeout(() => setAsked(false), GONE_MS);
    };
    return () => {
      others.close();
      clearTimeout(gone);
    };
  }, [userId]);
  return asked;
}

/** In a field, but for the one whose text is kept as a draft. */
function isSomethingWritten(): boolean {
  const fields = document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(FIELDS);
  return [...fields].some(
    (field) => field.value !== "" && !field.closest("[data-draft], [aria-hidden=true]"),
  );
}
