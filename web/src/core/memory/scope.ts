/**
 * The scope of a question: the part of a user's memory that its answer may use. The twin of
 * server/vademecum/model/memory/scope.py, which has the reasons; shared cases: tests/conformance/scope.json.
 */

type MemoryPartition = { kind: "pool" } | { kind: "project"; projectId: string };
export type MemoryScope = MemoryPartition | { kind: "all" };

/** Return the scope of a session, memory or summary in this project, or without a project. */
export function partitionOf(projectId: string | null | undefined): MemoryPartition {
  return projectId ? { kind: "project", projectId } : { kind: "pool" };
}

/**
 * Return whether the scope includes rows of this project, or of none. An episode belongs to its session's
 * project.
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
