/** Sentences of people, places and things, and how they are connected. */

import type { EntityDoc } from "../../core/schema/rows.ts";
import { count } from "./count.ts";
import { LOCALE } from "./locale.ts";

export const entities = {
  title: "Who and what",
  hint: "Whom and what the conversations of a project speak of. They belong to the project they were found in.",
  none: "Nobody and nothing is known yet. The assistant notes them while you talk in this project.",
  noProjects: "People, places and things belong to projects, and there is no project yet.",
  project: "Project",
  show: "Show as",
  list: "List",
  graph: "Graph",
  graphOf: (n: number, edges: number) =>
    `Graph of ${count(n, "name", "names")} and ${count(edges, "connection", "connections")}. ` +
    "The arrow keys go from name to name, Enter shows what is known. The list has the same in words.",
  graphMost: (shown: number, all: number) =>
    `The ${shown.toLocaleString(LOCALE)} best connected of ${all.toLocaleString(LOCALE)} are drawn. The list has all.`,
  choose: "Choose a name to see what is known.",
  node: (name: string, type: string, edges: number) =>
    `${name}, ${type}, ${count(edges, "connection", "connections")}`,
  types: {
    person: "People",
    organization: "Organizations",
    place: "Places",
    project: "Projects",
    technology: "Technologies",
    concept: "Concepts",
  } satisfies Record<EntityDoc["type"], string>,
  type: {
    person: "person",
    organization: "organization",
    place: "place",
    project: "project",
    technology: "technology",
    concept: "concept",
  } satisfies Record<EntityDoc["type"], string>,
  notes: (name: string) => `What is noted of ${name}`,
  connections: (name: string) => `Connections of ${name}`,
  noNotes: "Nothing is noted.",
  edit: "Edit notes",
  editOf: (name: string) => `Edit notes: ${name}`,
  remove: "Delete",
  removeOf: (name: string) => `Delete: ${name}, with all connections`,
  removeEdge: (sentence: string) => `Delete the connection: ${sentence}`,
  deleting: (name: string) => `“${name}” is being deleted, with its connections.`,
} as const;
