import { useCallback, useEffect, useState } from "react";
import type { Jobs } from "../../backend/memory/jobs.ts";
import { useAccountApi } from "../../client/backendClient.tsx";

const EVERY_MS = 5_000;

/** What the server does in the background, looked at anew while the page is open; null: it does not answer. */
export function useJobs() {
  const { api } = useAccountApi();
  const [jobs, setJobs] = useState<Jobs | null>();
  const look = useCallback(() => api.memory.listJobs().then(setJobs, () => setJobs(null)), [api]);
  useEffect(() => {
    void look();
    const timer = setInterval(() => void look(), EVERY_MS);
    return () => clearInterval(timer);
  }, [look]);

  /** One that failed, or all of them. */
  async function retry(id?: string): Promise<void> {
    await api.memory.retryJobs(id);
    await look();
  }

  return { jobs, look, retry };
}
