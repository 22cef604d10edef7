/**
 * What agents did. It is kept on the server alone: there is much of it, and who is on a train does not read it. So every
 * verb here asks the server, and fails when it does not answer.
 */

import { Refusal, request } from "../../lib/http.ts";
import { listAddress, question, type Observation, type Wanted } from "../../core/agents/observations.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** Where agents work, as `GET /v1/agents/projects` says. */
export interface AgentProject {
  project: { id: string; name: string };
  listObservations: number;
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
export interface AgentWork {
  observations: number;
  notice: string | null;
  sessions: AgentSession[];
}

interface SearchResponse {
  results: { type: string; observation?: Observation }[];
}

const PAGE_SIZE = 50;
/** Somebody waits for it. */
const REQUEST_TIMEOUT_MS = 10_000;
const MAX_RESULTS = 100;

export async function listAgentProjects({ server: wire }: AccountContext): Promise<AgentProject[]> {
  const { projects } = await request<{ projects: AgentProject[] }>(wire, "/v1/agents/projects?project=*");
  return projects;
}

export async function fetchAgentWork(
  { server: wire }: AccountContext,
  projectId: string,
): Promise<AgentWork> {
  const project = encodeURIComponent(projectId);
  const [{ projects }, { sessions }] = await Promise.all([
    request<{ projects: AgentProject[] }>(wire, `/v1/agents/projects?project=${project}`).catch(
      emptyIfNotFound({ projects: [] }),
    ),
    request<{ sessions: AgentSession[] }>(wire, `/v1/agents/sessions?project=${project}`).catch(
      emptyIfNotFound({ sessions: [] }),
    ),
  ]);
  return { observations: projects[0]?.listObservations ?? 0, notice: projects[0]?.notice ?? null, sessions };
}

/** Newest first; with words the best first, and those all at once. */
export async function observations(
  { server: wire }: AccountContext,
  projectId: string,
  wanted: Wanted,
  cursor: string | null,
): Promise<ObservationPage> {
  if (!wanted.words) {
    const path = listAddress(projectId, wanted, PAGE_SIZE, cursor);
    return request<ObservationPage>(wire, path, {}, REQUEST_TIMEOUT_MS).catch(
      emptyIfNotFound({ observations: [], next: null }),
    );
  }
  const body = JSON.stringify(question(projectId, wanted, MAX_RESULTS));
  const init = { method: "POST", body };
  const { results } = await request<SearchResponse>(
    wire,
    "/v1/observations/search",
    init,
    REQUEST_TIMEOUT_MS,
  ).catch(emptyIfNotFound({ results: [] }));
  return { observations: results.flatMap(({ observation }) => observation ?? []), next: null };
}

/** The row as it is then. */
export async function pinObservation(
  { server: wire }: AccountContext,
  row: Observation,
  pinned: boolean,
): Promise<Observation> {
  const init = { method: "PATCH", body: JSON.stringify({ pinned }) };
  return (await request<{ observation: Observation }>(wire, pathOf(row), init)).observation;
}

export async function deleteObservation({ server: wire }: AccountContext, row: Observation): Promise<void> {
  await request(wire, pathOf(row), { method: "DELETE" });
}

function pathOf({ id, projectId }: Observation): string {
  return `/v1/observations/${encodeURIComponent(id)}?project=${encodeURIComponent(projectId)}`;
}

/** A project that was made here a moment ago may not be there yet: no agent can have worked in it. */
function emptyIfNotFound<T>(empty: T) {
  return (error: unknown): T => {
    if (error instanceof Refusal && error.status === 404) return empty;
    throw error;
  };
}
