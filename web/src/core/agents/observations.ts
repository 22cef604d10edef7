/** Observations of coding agents: the server's row format, requests for rows, and how the app shows them. */

export const KINDS = [
  "edit",
  "write",
  "read",
  "command",
  "search",
  "error",
  "decision",
  "prompt",
  "session",
] as const;
export type ObservationKind = (typeof KINDS)[number];

/**
 * A row of `GET /v1/observations`. If an agent repeats an action within a session, all repeats share one row, and
 * `createdAt` is the time of the first.
 */
export interface Observation {
  id: string;
  createdAt: string;
  updatedAt: string;
  projectId: string;
  agentSession: string;
  kind: ObservationKind;
  content: string;
  /** Number of times that the agent performed this action in its session. */
  count: number;
  pinned: boolean;
  /** Number of secrets that the server redacted before storing the row. */
  redactions: number;
  path?: string;
  tool?: string;
}

/** Filter for the observations of a project. Empty fields match every observation. */
export interface ObservationFilter {
  words: string;
  kind: ObservationKind | "";
  agentSession: string;
  pinned: boolean;
}

export const NO_FILTER: ObservationFilter = { words: "", kind: "", agentSession: "", pinned: false };

/**
 * Return the filter as request parameters. Empty fields are omitted, so the server does not filter by them.
 */
function filters({ kind, agentSession, pinned }: ObservationFilter) {
  return { ...(kind && { kind }), ...(agentSession && { agentSession }), ...(pinned && { pinned }) };
}

/** Return the URL of a page of observations, newest first. */
export function listUrl(
  project: string,
  wanted: ObservationFilter,
  limit: number,
  cursor: string | null,
): string {
  const asked = { project, limit, ...filters(wanted), ...(cursor && { cursor }) };
  const query = new URLSearchParams(Object.entries(asked).map(([name, value]) => [name, String(value)]));
  return `/v1/observations?${query}`;
}

/** Return the body of a search request. The server returns the best matches first. */
export function searchRequest(project: string, wanted: ObservationFilter, limit: number) {
  return { query: wanted.words, project, limit, ...filters(wanted) };
}

/**
 * Return the heading of an observation in a list: its file path, or else its first line that is not blank.
 */
export function headingOf({ path, content }: Pick<Observation, "path" | "content">): string {
  return (
    path ??
    content
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.trim() ??
    ""
  );
}

/** Return whether an observation has content besides its heading. */
export function hasMore(observation: Pick<Observation, "path" | "content">): boolean {
  const text = observation.content.trim();
  return text !== "" && text !== headingOf(observation);
}

/**
 * Append the next page to the loaded rows without duplicates. A row can be on two pages, because repeated
 * actions change the order of the rows between two requests.
 */
export function appendPage(before: readonly Observation[], next: readonly Observation[]): Observation[] {
  const known = new Set(before.map(({ id }) => id));
  return [...before, ...next.filter(({ id }) => !known.has(id))];
}
