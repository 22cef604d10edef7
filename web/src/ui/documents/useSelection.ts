import { useState } from "react";
import type { DocumentDoc } from "../../core/schema/rows.ts";

export interface Selection {
  ids: string[];
  has(id: string): boolean;
  toggle(id: string): void;
  set(ids: string[]): void;
}

/** What is selected of the documents that there are: one that is deleted elsewhere leaves it. */
export function useSelection(documents: readonly DocumentDoc[]): Selection {
  const [held, setHeld] = useState<ReadonlySet<string>>(new Set());
  const ids = documents.flatMap(({ id }) => (held.has(id) ? [id] : []));
  return {
    ids,
    has: (id) => held.has(id),
    toggle: (id) =>
      setHeld((before) =>
        before.has(id) ? new Set([...before].filter((one) => one !== id)) : new Set([...before, id]),
      ),
    set: (chosen) => setHeld(new Set(chosen)),
  };
}
