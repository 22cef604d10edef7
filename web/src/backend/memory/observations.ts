/** Observations of agents. They are stored on the server only, so every function here sends a request. */

import { ApiError, requestJson } from "../../lib/http.ts";
import {
  listUrl,
  searchRequest,
  type Observation,
  type ObservationFilter,
} from "../../core/agents/observations.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** A project with agent activity (`GET /v1/agents/projects`). */
export interface AgentProject {
  project: { id: string; name: string };
  observations: number;
  lastAt: string | null;
  /** A notice for the user: another folder has the same project name. */
  notice: string | null;
}

export interface AgentSession {
  agentSession: string;
  observations: number;
  firstAt: string;
  lastAt: string;
}

/** A page of observations. `next` is the cursor of the next page, or null on the last page. */
export interface ObservationPage {
  observations: Observation[];
  next: string | null;
}

/** The agent activity in a project. */
export interface AgentActivity {
  listObservations: number;
  notice: string | null;
  sessions: AgentSession[];
}

interface SearchResponse {
  results: { type: string; observation?: Observation }[];
}

const PAGE_SIZE = 50;
/** Time limit of a request, because the user waits for the response. */
const TIMEOUT_MS = 10_000;
const MAX_FOUND = 100;

export async function listAgentProjects({ server }: AccountContext): Promise<AgentProject[]> {
  const { projects } = await requestJson<{ projects: AgentProject[] }>(
    server,
    "/v1/agents/projects?project=*",
  );
  return projects;
}

export async function agentActivity({ server }: AccountContext, projectId: string): Promise<AgentActivity> {
  const project = encodeURIComponent(projectId);
  const [{ projects }, { sessions }] = await Promise.all([
    requestJson<{ projects: AgentProject[] }>(server, `/v1/agents/projects?project=${project}`).catch(
      emptyIfNotFound({ projects: [] }),
    ),
    requestJson<{ sessions: AgentSession[] }>(server, `/v1/agents/sessions?project=${project}`).catch(
      emptyIfNotFound({ sessions: [] }),
    ),
  ]);
  return { listObservations: projects[0]?.observations ?? 0, notice: projects[0]?.notice ?? null, sessions };
}

/** Return a page of observations, newest first. If `wanted` has words, return the best matches, all on one page. */
export async function listObservations(
  { server }: AccountContext,
  projectId: string,
  wanted: ObservationFilter,
  cursor: string | null,
): Promise<ObservationPage> {
  if (!wanted.words) {
    const path = listUrl(projectId, wanted, PAGE_SIZE, cursor);
    return requestJson<ObservationPage>(server, path, {}, TIMEOUT_MS).catch(
      emptyIfNotFound({ observations: [], next: null }),
    );
  }
  const body = JSON.stringify(searchRequest(projectId, wanted, MAX_FOUND));
  const init = { method: "POST", body };
  const { results } = await requestJson<SearchResponse>(
    server,
    "/v1/observations/search",
    init,
    TIMEOUT_MS,
  ).catch(emptyIfNotFound({ results: [] }));
  return { observations: results.flatMap(({ observation }) => observation ?? []), next: null };
}

/** Pin or unpin an observation. Return the changed row. */
export async function pinObservation(
  { server }: AccountContext,
  row: Observation,
  pinned: boolean,
): Promise<Observation> {
  const init = { method: "PATCH", body: JSON.stringify({ pinned }) };
  return (await requestJson<{ observation: Observation }>(server, observationPath(row), init)).observation;
}

export async function deleteObservation({ server }: AccountContext, row: Observation): Promise<void> {
  await requestJson(server, observationPath(row), { method: "DELETE" });
}

function observationPath({ id, projectId }: Observation): string {
  return `/v1/observations/${encodeURIComponent(id)}?project=${encodeURIComponent(projectId)}`;
}

/**
 * Return an error handler that returns `empty` after a 404. The server responds with 404 for a new project that is not
 * synced yet, which has no observations.
 */
function emptyIfNotFound<T>(empty: T) {
  return (error: unknown): T => {
    if (error instanceof ApiError && error.status === 404) return empty;
    throw error;
  };
}
