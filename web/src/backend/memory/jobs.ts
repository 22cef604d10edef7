/** Background jobs of the LLM on the server. */

import { requestJson } from "../../lib/http.ts";
import type { AccountContext } from "../account/accountContext.ts";

export interface Job {
  id: string;
  kind: "extract" | "summarise";
  /** The row that the job is about: "collection/id". */
  subject: string;
  state: "waiting" | "running" | "failed" | "done";
  attempts: number;
  due: string;
  /** The message of the last failure. */
  error: string;
}

/** The response of `GET /v1/jobs`. */
export interface JobList {
  /** Whether memories are extracted, and by which model. `model` is null if there is no assistant. */
  extraction: { available: boolean; model: string | null; daily: number; today: number; note: string };
  counts: Record<Job["state"], number>;
  jobs: Job[];
}

const MAX_JOBS = 1000;

export function listJobs({ server }: AccountContext): Promise<JobList> {
  return requestJson<JobList>(server, `/v1/jobs?limit=${MAX_JOBS}`);
}

/** Retry the job with this id, or all failed jobs if no id is given. */
export async function retryJobs({ server }: AccountContext, id?: string): Promise<void> {
  const path = id === undefined ? "/v1/jobs/retry" : `/v1/jobs/${encodeURIComponent(id)}/retry`;
  await requestJson(server, path, { method: "POST" });
}
