import { useDraft } from "../drafts.ts";

/**
 * Return whether the user has dismissed a row's rejection, and a function to dismiss it. Later rejections are
 * shown.
 */
export function useDismissed(row: string, rejectedAt: string | undefined): [boolean, () => void] {
  const [dismissedAt, setDismissedAt] = useDraft(`kept ${row}`);
  return [dismissedAt !== "" && dismissedAt === rejectedAt, () => setDismissedAt(rejectedAt ?? "")];
}
