import { useState } from "react";
import type { DocumentDoc } from "../../core/schema/rows.ts";

export interface Selection {
  ids: string[];
  has(id: string): boolean;
  toggle(id: string): void;
  set(ids: string[]): void;
}

/** Return the selection. It contains only existing documents: a document that was deleted elsewhere is left out. */
export function useSelection(documents: readonly DocumentDoc[]): Selection {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  return {
    ids: documents.map(({ id }) => id).filter((id) => selected.has(id)),
    has: (id) => selected.has(id),
    toggle: (id) =>
      setSelected(
        (before) => new Set(before.has(id) ? [...before].filter((other) => other !== id) : [...before, id]),
      ),
    set: (ids) => setSelected(new Set(ids)),
  };
}
