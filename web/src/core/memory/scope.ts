/**
 * What of a user's memory may be seen: the scope of a question. The twin of server/vademecum/model/memory/scope.py, which says
 * why; shared cases: tests/conformance/scope.json.
 */

type MemoryPartition = { kind: "pool" } | { kind: "project"; projectId: string };
export type MemoryScope = MemoryPartition | { kind: "all" };

/** The scope of a session, memory or summary in this project, or in none. */
export function partitionOf(projectId: string | null | undefined): MemoryPartition {
  return projectId ? { kind: "project", projectId } : { kind: "pool" };
}

/** Whether a row that is in this project, or in none, is within the scope. An episode is where its session is now. */
export function sees(scope: MemoryScope, projectId: string | null | undefined): boolean {
  switch (scope.kind) {
    case "all":
      return true;
    case "pool":
      return (projectId ?? null) === null;
    case "project":
      return projectId === scope.projectId;
  }
}
