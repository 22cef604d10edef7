import { useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import { deleteDraft, hasDraft } from "../drafts.ts";

export const draftOf = (factId = "new") => `fact ${factId}`;

/** Return whether the form of a fact, or of a new fact, is open. A form with a draft opens by itself. */
export function useFactForm(factId?: string) {
  const { userId, forgottenAt } = useAccountApi().account;
  const id = draftOf(factId);
  const [isOpen, setOpen] = useState(() => hasDraft(userId, id, forgottenAt));
  function close() {
    deleteDraft(userId, id);
    setOpen(false);
  }
  return { isOpen, open: () => setOpen(true), close };
}
