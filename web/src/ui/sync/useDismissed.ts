import { useDraft } from "../drafts.ts";

/**
 * Return whether the user has dismissed a row's rejection, and a function that dismisses it. A later rejection of the
 * same row is shown again.
 */
export function useDismissed(row: string, rejectedAt: string | undefined): [boolean, () => void] {
  const [dismissedAt, setDismissedAt] = useDraft(`kept ${row}`);
  return [dismissedAt !== "" && dismissedAt === rejectedAt, () => setDismissedAt(rejectedAt ?? "")];
}
