import type { ProjectDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { usePending } from "../pendingDeletes.ts";

/** The projects by name, without those that are being deleted. */
export function useProjects(): ProjectDoc[] | undefined {
  const pending = usePending();
  return useRows("projects")
    ?.filter(({ id }) => !pending.has(id))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}
