/** Sentences of projects. Short and concrete: what happened, what is safe, what to do. */

import { count, moment } from "./count.ts";

const conversations = (n: number) => count(n, "conversation", "conversations");

export const projects = {
  title: "Projects",
  hint: "What is said and remembered in a project stays in it: no other conversation sees it.",
  none: "There are no projects yet. Put conversations together that belong to one thing, and keep the rest out of it.",
  add: "New project",
  name: "Name",
  description: "What it is about",
  create: "Create",
  edit: "Edit",
  editOf: (name: string) => `Edit ${name}`,
  remove: "Delete",
  removeOf: (name: string) => `Delete ${name}`,
  counts: (sessions: number, statements: number) =>
    `${conversations(sessions)} · ${count(statements, "statement", "statements")} remembered`,
  back: "All projects",
  gone: "This project is not here. It may have been deleted, on this device or on another.",
  parts: "Parts of this project",
  about: "Overview",
  remembered: "Remembered",
  entities: "Who and what",
  agents: "What agents did",
  begin: "New conversation here",
  conversations: "Conversations",
  conversationsHint: "They see what was said and what is remembered in this project, and nothing else.",
  noConversations: "No conversation is in this project yet. Begin one here, or bring one in.",
  moveIn: "Bring a conversation in",
  moveInChoose: "Choose a conversation",
  moveInNone: "No other conversation has this in its title.",
  moveOut: "Take out",
  moveOutOf: (title: string) => `Take out: “${title}”`,
  deleting: (name: string) => `“${name}” is being deleted.`,
  open: (name: string) => `Show the conversations of ${name}`,

  overview: {
    title: "Overview",
    hint: "What its conversations came to so far. The assistant writes it when you ask.",
    none: "No overview is written yet.",
    write: "Write an overview",
    again: "Write it anew",
    writing:
      "The assistant reads the conversations and writes. This can take some minutes; you can go on meanwhile.",
    since: (at: string) => `Begun ${at}.`,
    stop: "Stop",
    written: (at: string) => `Written on ${moment(at)}`,
    failed: "No overview was written. What was there before is kept.",
  },

  deletion: {
    title: (name: string) => `Delete ${name}?`,
    goes: (statements: number, names: number) =>
      `What goes, from all your devices: ${count(statements, "remembered statement", "remembered statements")}, ` +
      `${count(names, "person or thing", "people and things")} with their connections, and the overview.`,
    stays: "Documents and facts stay. This is what happens to its conversations:",
    none: "Documents and facts stay.",
    keep: (n: number) => `${conversations(n)} ${n === 1 ? "is" : "are"} kept`,
    keepHint: "With all messages, and in no project from then on.",
    drop: (n: number) => `${conversations(n)} ${n === 1 ? "is" : "are"} deleted, too`,
    dropHint: "With all messages. Documents that were borrowed stay.",
    confirm: "Delete the project",
    confirmAll: "Delete the project and its conversations",
    cancel: "Keep it",
  },
} as const;
