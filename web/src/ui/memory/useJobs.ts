import { useCallback, useEffect, useState } from "react";
import type { JobList } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";

const POLL_MS = 5_000;

/** Poll the background jobs of the server. `jobs` is null if the last request failed. */
export function useJobs() {
  const { api } = useAccountApi();
  const [jobs, setJobs] = useState<JobList | null>();
  const refresh = useCallback(() => api.memory.listJobs().then(setJobs, () => setJobs(null)), [api]);
  useEffect(() => {
    void refresh();
    const timer = setInterval(() => void refresh(), POLL_MS);
    return () => clearInterval(timer);
  }, [refresh]);

  /** Retry the failed job with this id, or all failed jobs if `id` is undefined. */
  async function retry(id?: string): Promise<void> {
    await api.memory.retryJobs(id);
    await refresh();
  }

  return { jobs, refresh, retry };
}
