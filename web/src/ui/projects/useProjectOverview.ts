import type { OverviewState } from "../../backend/api.ts";
import { useAccountApi, useSubscription } from "../../client/backendClient.tsx";

/** Return the state of writing a project's overview, or undefined if it is neither being written nor has failed. */
export function useProjectOverview(projectId: string): OverviewState | undefined {
  const { api } = useAccountApi();
  const all = useSubscription<Record<string, OverviewState>>(
    (listener) => api.memory.watchOverviews(listener),
    "overviews",
  );
  return all?.[projectId];
}
