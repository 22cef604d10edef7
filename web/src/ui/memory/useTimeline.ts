import { useEffect, useState } from "react";
import type { MemoryPlace, Timeline } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";

/** Return the turns that match a query. Until the result of a new query arrives, return the previous result. */
export function useTimeline(query: string, where: MemoryPlace, limit: number): Timeline | undefined {
  const { api } = useAccountApi();
  const [timeline, setTimeline] = useState<Timeline>();
  useEffect(() => {
    let isStale = false;
    void api.memory.searchTimeline(query, where, limit).then((result) => isStale || setTimeline(result));
    return () => void (isStale = true);
  }, [api, query, where, limit]);
  return timeline;
}
