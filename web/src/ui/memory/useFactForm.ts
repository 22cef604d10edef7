import { useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";

export const draftOf = (factId = "new") => `fact ${factId}`;

/**
 * Return the state of the form for a fact, or for a new fact if `factId` is undefined. A form with a draft is open from
 * the start.
 */
export function useFactForm(factId?: string) {
  const { account, drafts } = useAccountApi();
  const id = draftOf(factId);
  const [isOpen, setOpen] = useState(() => drafts.text(id, account.forgottenAt) !== "");
  function close() {
    drafts.delete(id);
    setOpen(false);
  }
  return { isOpen, open: () => setOpen(true), close };
}
