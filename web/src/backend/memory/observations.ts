/**
 * What agents did. It is kept on the server alone: there is much of it, and who is on a train does not read it. So every
 * verb here asks the server, and fails when it does not answer.
 */

import { Refusal, request } from "../../lib/http.ts";
import { listAddress, question, type Observation, type Wanted } from "../../core/agents/observations.ts";
import type { House } from "../account/accountContext.ts";

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
  observations: number;
  notice: string | null;
  sessions: AgentSession[];
}

interface Found {
  results: { type: string; observation?: Observation }[];
}

const PAGE = 50;
/** Somebody waits for it. */
const TIMEOUT_MS = 10_000;
const FOUND_MOST = 100;

export async function agentProjects({ wire }: House): Promise<AgentProject[]> {
  const { projects } = await request<{ projects: AgentProject[] }>(wire, "/v1/agents/projects?project=*");
  return projects;
}

export async function agentWork({ wire }: House, projectId: string): Promise<AgentActivity> {
  const project = encodeURIComponent(projectId);
  const [{ projects }, { sessions }] = await Promise.all([
    request<{ projects: AgentProject[] }>(wire, `/v1/agents/projects?project=${project}`).catch(
      unlessUnknown({ projects: [] }),
    ),
    request<{ sessions: AgentSession[] }>(wire, `/v1/agents/sessions?project=${project}`).catch(
      unlessUnknown({ sessions: [] }),
    ),
  ]);
  return { observations: projects[0]?.observations ?? 0, notice: projects[0]?.notice ?? null, sessions };
}

/** Newest first; with words the best first, and those all at once. */
export async function observations(
  { wire }: House,
  projectId: string,
  wanted: Wanted,
  cursor: string | null,
): Promise<ObservationPage> {
  if (!wanted.words) {
    const path = listAddress(projectId, wanted, PAGE, cursor);
    return request<ObservationPage>(wire, path, {}, TIMEOUT_MS).catch(
      unlessUnknown({ observations: [], next: null }),
    );
  }
  const body = JSON.stringify(question(projectId, wanted, FOUND_MOST));
  const init = { method: "POST", body };
  const { results } = await request<Found>(wire, "/v1/observations/search", init, TIMEOUT_MS).catch(
    unlessUnknown({ results: [] }),
  );
  return { observations: results.flatMap(({ observation }) => observation ?? []), next: null };
}

/** The row as it is then. */
export async function pinObservation(
  { wire }: House,
  row: Observation,
  pinned: boolean,
): Promise<Observation> {
  const init = { method: "PATCH", body: JSON.stringify({ pinned }) };
  return (await request<{ observation: Observation }>(wire, addressOf(row), init)).observation;
}

export async function deleteObservation({ wire }: House, row: Observation): Promise<void> {
  await request(wire, addressOf(row), { method: "DELETE" });
}

function addressOf({ id, projectId }: Observation): string {
  return `/v1/observations/${encodeURIComponent(id)}?project=${encodeURIComponent(projectId)}`;
}

/** A project that was made here a moment ago may not be there yet: no agent can have worked in it. */
function unlessUnknown<T>(nothing: T) {
  return (error: unknown): T => {
    if (error instanceof Refusal && error.status === 404) return nothing;
    throw error;
  };
}
