import { useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";

export const draftOf = (factId = "new") => `fact ${factId}`;

/** Return whether the form of a fact, or of a new fact, is open. A form with a draft opens automatically. */
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
