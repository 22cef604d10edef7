import type { Overview } from "../../services/overviews.ts";
import { useWatched } from "../desk.tsx";
import { useMemoryDesk } from "../useMemoryDesk.ts";

/** How far the overview of a project is that is being written, or why it was not. */
export function useOverviewing(projectId: string): Overview | undefined {
  const memory = useMemoryDesk();
  const all = useWatched<Record<string, Overview>>(
    (listener) => memory<unknown>((desk) => desk.watchOverviews(listener)),
    "overviews",
  );
  return all?.[projectId];
}
