/** What the assistant's model does behind the answers, on the server: how far it is, what failed, trying that again. */

import { requestJson } from "../../lib/http.ts";
import type { AccountContext } from "../account/accountContext.ts";

export interface Job {
  id: string;
  kind: "extract" | "summarise";
  /** The row it is about: "collection/id". */
  subject: string;
  state: "waiting" | "running" | "failed" | "done";
  attempts: number;
  due: string;
  /** Why it did not succeed last time, in words. */
  error: string;
}

/** `GET /v1/jobs`. */
export interface JobList {
  /** Whether what is said becomes memory, and by which model: null if no assistant is set up. */
  extraction: { available: boolean; model: string | null; daily: number; today: number; note: string };
  counts: Record<Job["state"], number>;
  jobs: Job[];
}

const MAX_JOBS = 1000;

export function listJobs({ server }: AccountContext): Promise<JobList> {
  return requestJson<JobList>(server, `/v1/jobs?limit=${MAX_JOBS}`);
}

/** One of them, or all that failed. */
export async function retryJobs({ server }: AccountContext, id?: string): Promise<void> {
  const path = id === undefined ? "/v1/jobs/retry" : `/v1/jobs/${encodeURIComponent(id)}/retry`;
  await requestJson(server, path, { method: "POST" });
}
