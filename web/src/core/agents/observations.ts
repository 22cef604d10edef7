/** What agents did, as the server tells it, and how it is asked for and shown. */

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

/** A row of `GET /v1/observations`. Repeats within a session of an agent are one row: `createdAt` is the first. */
export interface Observation {
  id: string;
  createdAt: string;
  updatedAt: string;
  projectId: string;
  agentSession: string;
  kind: ObservationKind;
  content: string;
  /** How often it was done. */
  count: number;
  pinned: boolean;
  /** How many secrets were hidden in it before it was stored. */
  redactions: number;
  path?: string;
  tool?: string;
}

/** What is wanted of a project. Empty: whatever there is. */
export interface ObservationFilter {
  words: string;
  kind: ObservationKind | "";
  agentSession: string;
  pinned: boolean;
}

export const NO_FILTER: ObservationFilter = { words: "", kind: "", agentSession: "", pinned: false };

/** As the server names them. It does not look at what is not named. */
function filters({ kind, agentSession, pinned }: ObservationFilter) {
  return { ...(kind && { kind }), ...(agentSession && { agentSession }), ...(pinned && { pinned }) };
}

/** The address of a page of the list, newest first. */
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

/** The body of a search, which finds the best first. */
export function searchRequest(project: string, wanted: ObservationFilter, limit: number) {
  return { query: wanted.words, project, limit, ...filters(wanted) };
}

/** What it is called in a list: the file, or else the first line that says something. */
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

/** Whether opening it shows more than its head says. */
export function hasMore(observation: Pick<Observation, "path" | "content">): boolean {
  const text = observation.content.trim();
  return text !== "" && text !== headingOf(observation);
}

/** The next page after those before. A row can come twice: between two pages a repeat may have made it older. */
export function appendPage(before: readonly Observation[], next: readonly Observation[]): Observation[] {
  const known = new Set(before.map(({ id }) => id));
  return [...before, ...next.filter(({ id }) => !known.has(id))];
}
