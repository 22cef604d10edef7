/** The schemas in schemas/, with the indexes that queries on the device need. */

import type { RxJsonSchema } from "rxdb/plugins/core";
import type { Collections } from "../core/schema/rows.ts";
import documents from "../../../schemas/documents.v1.json";
import entities from "../../../schemas/entities.v0.json";
import episodes from "../../../schemas/episodes.v1.json";
import facts from "../../../schemas/facts.v0.json";
import memories from "../../../schemas/memories.v0.json";
import projects from "../../../schemas/projects.v1.json";
import relationships from "../../../schemas/relationships.v0.json";
import sessions from "../../../schemas/sessions.v1.json";
import summaries from "../../../schemas/summaries.v0.json";
import vectorEmbeddings from "../../../schemas/vectorEmbeddings.v1.json";

export type Schemas = { [Name in keyof Collections]: RxJsonSchema<Collections[Name]> };

export const schemas = {
  documents,
  vectorEmbeddings, // no index: blocks of a document are found by a range of ids, `{documentId}.…`
  projects,
  sessions: { ...sessions, indexes: ["updatedAt"] },
  episodes: { ...episodes, indexes: [["sessionId", "createdAt"], "createdAt"] },
  facts,
  memories,
  entities,
  relationships,
  summaries,
} as unknown as Schemas;
