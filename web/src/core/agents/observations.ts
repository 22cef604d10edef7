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
export interface Wanted {
  words: string;
  kind: ObservationKind | "";
  agentSession: string;
  pinned: boolean;
}

export const EVERYTHING: Wanted = { words: "", kind: "", agentSession: "", pinned: false };

/** As the server names them. It does not look at what is not named. */
function filters({ kind, agentSession, pinned }: Wanted) {
  return { ...(kind && { kind }), ...(agentSession && { agentSession }), ...(pinned && { pinned }) };
}

/** The address of a page of the list, newest first. */
export function listAddress(project: string, wanted: Wanted, limit: number, cursor: string | null): string {
  const asked = { project, limit, ...filters(wanted), ...(cursor && { cursor }) };
  const query = new URLSearchParams(Object.entries(asked).map(([name, value]) => [name, String(value)]));
  return `/v1/observations?${query}`;
}

/** The body of a search, which finds the best first. */
export function question(project: string, wanted: Wanted, limit: number) {
  return { query: wanted.words, project, limit, ...filters(wanted) };
}

/** What it is called in a list: the file, or else the first line that says something. */
export function headOf({ path, content }: Pick<Observation, "path" | "content">): string {
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
  return text !== "" && text !== headOf(observation);
}

/** The next page after those before. A row can come twice: between two pages a repeat may have made it older. */
export function continued(before: readonly Observation[], next: readonly Observation[]): Observation[] {
  const known = new Set(before.map(({ id }) => id));
  return [...before, ...next.filter(({ id }) => !known.has(id))];
}
