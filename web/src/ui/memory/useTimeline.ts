import { useEffect, useState } from "react";
import type { Timeline, Where } from "../../services/timeline.ts";
import { useMemoryDesk } from "../useMemoryDesk.ts";

/** What was said that fits; an answer that comes late is dropped, and the last one stays until the next. */
export function useTimeline(query: string, where: Where, most: number): Timeline | undefined {
  const memory = useMemoryDesk();
  const [found, setFound] = useState<Timeline>();
  useEffect(() => {
    let late = false;
    void memory((desk) => desk.timeline(query, where, most)).then((turns) => late || setFound(turns));
    return () => void (late = true);
  }, [memory, query, where, most]);
  return found;
}
