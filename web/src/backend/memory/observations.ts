/**
 * What agents did. It is kept on the server alone: there is much of it, and who is on a train does not read it. So every
 * verb here asks the server, and fails when it does not answer.
 */

import { ApiError, requestJson } from "../../lib/http.ts";
import {
  listUrl,
  searchRequest,
  type Observation,
  type ObservationFilter,
} from "../../core/agents/observations.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** Where agents work, as `GET /v1/agents/projects` says. */
export interface AgentProject {
  project: { id: string; name: string };
  observations: number;
  lastAt: string | null;
  /** For the person: another folder calls itself the same. */
  notice: string | null;
}

export interface AgentSession {
  agentSession: string;
  observations: number;
  firstAt: string;
  lastAt: string;
}

/** `next`: how to go on; null at the end. */
export interface ObservationPage {
  observations: Observation[];
  next: string | null;
}

/** A project, what agents did in it, and their sessions. */
export interface AgentActivity {
  listObservations: number;
  notice: string | null;
  sessions: AgentSession[];
}

interface SearchResponse {
  results: { type: string; observation?: Observation }[];
}

const PAGE_SIZE = 50;
/** Somebody waits for it. */
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

/** Newest first; with words the best first, and those all at once. */
export async function observations(
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

/** The row as it is then. */
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

/** A project that was made here a moment ago may not be there yet: no agent can have worked in it. */
function emptyIfNotFound<T>(nothing: T) {
  return (error: unknown): T => {
    if (error instanceof ApiError && error.status === 404) return nothing;
    throw error;
  };
}
