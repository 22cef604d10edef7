import { useEffect, useState } from "react";
import type { Timeline, Where } from "../../backend/memory/timeline.ts";
import { useMemoryApi } from "../../client/useMemoryApi.ts";

/** What was said that fits; an answer that comes late is dropped, and the last one stays until the next. */
export function useTimeline(query: string, where: Where, most: number): Timeline | undefined {
  const memory = useMemoryApi();
  const [found, setFound] = useState<Timeline>();
  useEffect(() => {
    let late = false;
    void memory((desk) => desk.timeline(query, where, most)).then((turns) => late || setFound(turns));
    return () => void (late = true);
  }, [memory, query, where, most]);
  return found;
}
