import type { OverviewState } from "../../backend/memory/projectOverviews.ts";
import { useAccountApi, useSubscription } from "../../client/backendClient.tsx";

/** How far the overview of a project is that is being written, or why it was not. */
export function useProjectOverview(projectId: string): OverviewState | undefined {
  const { api } = useAccountApi();
  const all = useSubscription<Record<string, OverviewState>>(
    (listener) => api.memory.watchOverviews(listener),
    "overviews",
  );
  return all?.[projectId];
}
