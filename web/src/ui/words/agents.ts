/** Sentences of what coding agents did. */

import type { ObservationKind } from "../../core/agents/observations.ts";
import { ago, count, moment } from "./count.ts";
import { date } from "./measures.ts";

const done = (n: number) => count(n, "step", "steps");

export const agents = {
  title: "What agents did",
  hint: "Coding agents that work in this project leave here what they read, changed, ran and decided. It is kept on the server; it is not on this device.",
  away: "What agents did is kept on the server; it is not on this device. The server does not answer now. It is shown here as soon as it does.",
  failed: "What agents did could not be read.",
  tryAgain: "Try again",
  none: "No agent has worked in this project yet. Once one is set up to record, its work is listed here by day.",
  noneFit: "Nothing of it fits what is chosen here.",
  namesake: "Another folder has this name",

  filters: "What is shown",
  search: "Search what agents did",
  kind: "Kind",
  allKinds: "Every kind",
  session: "Session",
  allSessions: "Every session",
  oneSession: (firstAt: string, n: number) => `${moment(firstAt)}, ${done(n)}`,
  pinnedOnly: "Pinned only",
  refresh: "Look again",

  found: (n: number) => `${done(n)} found, the best first.`,
  shown: (n: number, more: boolean) => (more ? `The newest ${done(n)}.` : `${done(n)}.`),
  more: "Show more",
  loading: "Reading what agents did",

  kinds: {
    edit: "Edited",
    write: "Written",
    read: "Read",
    command: "Command",
    search: "Search",
    error: "Error",
    decision: "Decision",
    prompt: "Asked by you",
    session: "Session",
  } satisfies Record<ObservationKind, string>,
  times: (n: number) => count(n, "time", "times"),
  last: (at: string) => `last on ${moment(at)}`,
  hidden: (n: number) => `${count(n, "secret", "secrets")} hidden`,
  nameless: "Nothing was noted of it",
  pinned: "Pinned: kept for good",
  pin: "Pin",
  unpin: "Unpin",
  delete: "Delete",
  of: (verb: string, what: string) => `${verb}: ${what}`,
  nowPinned: "Pinned. It is kept for good, and the next session is told of it first.",
  nowUnpinned: "No longer pinned. It is deleted when its time is over.",

  deletion: {
    title: "Delete this step?",
    goes: "What is noted of it goes from the server, and no agent is told of it any more. It cannot be brought back. The files of your project stay as they are.",
    confirm: "Delete it",
    cancel: "Keep it",
    deleted: "Deleted.",
  },

  inProject: (n: number, lastAt: string, now: number) => `Agents: ${done(n)}, the last ${ago(lastAt, now)}`,
  onlyAgents: "Only where agents work",
  listAway: "Where agents work is known to the server, which does not answer now.",
  day: date,
} as const;
