// Written by `make schemas` from the structs in server/vademecum/model/schema/collections.py. Not to be edited.

import type { Collections } from "./rows.ts";

/** A field with one or several ids of rows of another collection, and what happens when such a row is deleted: the row is
 * deleted too (`cascade`), the id is removed (`unset`), a field becomes true (`flag`), or the row is deleted if both have
 * the same parents (`follow`). */
export interface Relation {
  of: keyof Collections;
  field: string;
  to: keyof Collections;
  onDelete: "cascade" | "unset" | "flag" | "follow";
  flagField?: string;
}

export const RELATIONS: readonly Relation[] = [
  { of: "documents", field: "activeSessions", to: "sessions", onDelete: "unset" },
  { of: "vectorEmbeddings", field: "documentId", to: "documents", onDelete: "cascade" },
  { of: "projects", field: "documentIds", to: "documents", onDelete: "unset" },
  { of: "sessions", field: "projectId", to: "projects", onDelete: "unset" },
  { of: "episodes", field: "sessionId", to: "sessions", onDelete: "cascade" },
  { of: "facts", field: "sourceDocumentId", to: "documents", onDelete: "flag", flagField: "sourceRemoved" },
  { of: "memories", field: "projectId", to: "projects", onDelete: "cascade" },
  { of: "memories", field: "sessionIds", to: "sessions", onDelete: "unset" },
  { of: "memories", field: "supersedes", to: "memories", onDelete: "unset" },
  { of: "memories", field: "supersededBy", to: "memories", onDelete: "follow" },
  { of: "entities", field: "projectId", to: "projects", onDelete: "cascade" },
  { of: "relationships", field: "fromId", to: "entities", onDelete: "cascade" },
  { of: "relationships", field: "toId", to: "entities", onDelete: "cascade" },
  { of: "summaries", field: "sessionId", to: "sessions", onDelete: "cascade" },
  { of: "summaries", field: "projectId", to: "projects", onDelete: "cascade" },
];
