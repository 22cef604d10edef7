import type { OverviewState } from "../../backend/api.ts";
import { useAccountApi, useSubscription } from "../../client/backendClient.tsx";

/** Return the state of a project's overview while the overview is being written, or its error. */
export function useProjectOverview(projectId: string): OverviewState | undefined {
  const { api } = useAccountApi();
  const all = useSubscription<Record<string, OverviewState>>(
    (listener) => api.memory.watchOverviews(listener),
    "overviews",
  );
  return all?.[projectId];
}
