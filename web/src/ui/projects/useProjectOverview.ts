import type { Overview } from "../../backend/memory/projectOverviews.ts";
import { useWatched } from "../../client/backendClient.tsx";
import { useMemoryApi } from "../../client/useMemoryApi.ts";

/** How far the overview of a project is that is being written, or why it was not. */
export function useProjectOverview(projectId: string): Overview | undefined {
  const memory = useMemoryApi();
  const all = useWatched<Record<string, Overview>>(
    (listener) => memory<unknown>((desk) => desk.watchOverviews(listener)),
    "overviews",
  );
  return all?.[projectId];
}
