import type { ProjectDoc } from "../../model/rows.ts";
import { useRows } from "../desk.tsx";
import { usePending } from "../pending.ts";

/** The projects by name, without those that are being deleted. */
export function useProjects(): ProjectDoc[] | undefined {
  const pending = usePending();
  return useRows("projects")
    ?.filter(({ id }) => !pending.has(id))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}
