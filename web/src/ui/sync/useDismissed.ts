/** Whether somebody keeps on this device what the server refused; they are asked again when it is refused anew. */

import { useDraft } from "../drafts.ts";

export function useDismissed(row: string, refusedAt: string | undefined): [boolean, () => void] {
  const [keptAt, setKeptAt] = useDraft(`kept ${row}`);
  return [keptAt !== "" && keptAt === refusedAt, () => setKeptAt(refusedAt ?? "")];
}
