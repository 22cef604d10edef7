/** Whether the form of a fact, or of a new one, is open: from the beginning where somebody was writing in it. */

import { useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import { forgetDraft, hasDraft } from "../drafts.ts";

export const draftOf = (factId = "new") => `fact ${factId}`;

export function useFactForm(factId?: string) {
  const { userId, forgottenAt } = useAccountApi().account;
  const id = draftOf(factId);
  const [isOpen, setOpen] = useState(() => hasDraft(userId, id, forgottenAt));
  function close() {
    forgetDraft(userId, id);
    setOpen(false);
  }
  return { isOpen, open: () => setOpen(true), close };
}
