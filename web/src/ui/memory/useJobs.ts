import { useCallback, useEffect, useState } from "react";
import type { JobList } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";

const POLL_MS = 5_000;

/** Poll the background jobs of the server. `jobs` is null if the server does not respond. */
export function useJobs() {
  const { api } = useAccountApi();
  const [jobs, setJobs] = useState<JobList | null>();
  const refresh = useCallback(() => api.memory.listJobs().then(setJobs, () => setJobs(null)), [api]);
  useEffect(() => {
    void refresh();
    const timer = setInterval(() => void refresh(), POLL_MS);
    return () => clearInterval(timer);
  }, [refresh]);

  /** Retry a failed job, or all of them. */
  async function retry(id?: string): Promise<void> {
    await api.memory.retryJobs(id);
    await refresh();
  }

  return { jobs, refresh, retry };
}
