/** What rows are called, by their collections. Short and concrete. */

import { count } from "./count.ts";

export const rows = {
  documents: (n: number) => count(n, "document", "documents"),
  vectorEmbeddings: (n: number) => count(n, "stretch of text", "stretches of text"),
  projects: (n: number) => count(n, "project", "projects"),
  sessions: (n: number) => count(n, "conversation", "conversations"),
  episodes: (n: number) => count(n, "message", "messages"),
  facts: (n: number) => count(n, "fact", "facts"),
  memories: (n: number) => count(n, "statement", "statements"),
  entities: (n: number) => count(n, "name", "names"),
  relationships: (n: number) => count(n, "connection", "connections"),
  summaries: (n: number) => count(n, "summary", "summaries"),
} as const;

export const row = {
  documents: "Document",
  vectorEmbeddings: "Text of a document",
  projects: "Project",
  sessions: "Conversation",
  episodes: "Message",
  facts: "Fact",
  memories: "Statement",
  entities: "Name",
  relationships: "Connection",
  summaries: "Summary",
} as const;
