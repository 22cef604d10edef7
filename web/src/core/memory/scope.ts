/**
 * The scope of a question: the part of a user's memory that its answer may use. This module mirrors
 * server/vademecum/model/memory/scope.py, which explains the rules; both are tested with tests/conformance/scope.json.
 */

type MemoryPartition = { kind: "pool" } | { kind: "project"; projectId: string };
export type MemoryScope = MemoryPartition | { kind: "all" };

/** Return the scope of a session, memory or summary: its project, or the pool if it has no project. */
export function partitionOf(projectId: string | null | undefined): MemoryPartition {
  return projectId ? { kind: "project", projectId } : { kind: "pool" };
}

/**
 * Return whether the scope includes rows of this project or, if `projectId` is null, rows without a project. An episode
 * belongs to its session's project.
 */
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
