import { useEffect, useState } from "react";
import type { Timeline, MemoryPlace } from "../../backend/memory/timeline.ts";
import { useAccountApi } from "../../client/backendClient.tsx";

/** What was said that fits; an answer that comes late is dropped, and the last one stays until the next. */
export function useTimeline(query: string, where: MemoryPlace, most: number): Timeline | undefined {
  const { api } = useAccountApi();
  const [found, setFound] = useState<Timeline>();
  useEffect(() => {
    let late = false;
    void api.memory.searchTimeline(query, where, most).then((turns) => late || setFound(turns));
    return () => void (late = true);
  }, [api, query, where, most]);
  return found;
}
