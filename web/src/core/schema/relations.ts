// Written by `make schemas` from the structs in server/vademecum/model/schema/collections.py. Not to be edited.

import type { Collections } from "./rows.ts";

/** A field of a row, or each id in it, names a row of another collection. When that dies, the row dies with it, the
 * name leaves the row, or the row is marked; or the row follows it if both have the same parents. */
export interface Relation {
  of: keyof Collections;
  field: string;
  to: keyof Collections;
  onDeath: "die" | "leave" | "mark" | "follow";
  mark?: string;
}

export const RELATIONS: readonly Relation[] = [
  { of: "documents", field: "activeSessions", to: "sessions", onDeath: "leave" },
  { of: "vectorEmbeddings", field: "documentId", to: "documents", onDeath: "die" },
  { of: "sessions", field: "projectId", to: "projects", onDeath: "leave" },
  { of: "episodes", field: "sessionId", to: "sessions", onDeath: "die" },
  { of: "facts", field: "sourceDocumentId", to: "documents", onDeath: "mark", mark: "sourceRemoved" },
  { of: "memories", field: "projectId", to: "projects", onDeath: "die" },
  { of: "memories", field: "sessionIds", to: "sessions", onDeath: "leave" },
  { of: "memories", field: "supersedes", to: "memories", onDeath: "leave" },
  { of: "memories", field: "supersededBy", to: "memories", onDeath: "follow" },
  { of: "entities", field: "projectId", to: "projects", onDeath: "die" },
  { of: "relationships", field: "fromId", to: "entities", onDeath: "die" },
  { of: "relationships", field: "toId", to: "entities", onDeath: "die" },
  { of: "summaries", field: "sessionId", to: "sessions", onDeath: "die" },
  { of: "summaries", field: "projectId", to: "projects", onDeath: "die" },
];
