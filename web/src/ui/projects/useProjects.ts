import type { ProjectDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { usePendingDeletes } from "../pendingDeletes.ts";

/** Return the projects sorted by name, without those that are being deleted. */
export function useProjects(): ProjectDoc[] | undefined {
  const pending = usePendingDeletes();
  return useRows("projects")
    ?.filter(({ id }) => !pending.has(id))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}
