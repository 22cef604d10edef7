import { useDraft } from "../drafts.ts";

/** Return whether the user has dismissed a rejection, and a function that dismisses it. A new rejection is shown again. */
export function useDismissed(row: string, rejectedAt: string | undefined): [boolean, () => void] {
  const [dismissedAt, setDismissedAt] = useDraft(`kept ${row}`);
  return [dismissedAt !== "" && dismissedAt === rejectedAt, () => setDismissedAt(rejectedAt ?? "")];
}
