/** Sentences of a conversation. Short and concrete: what happened, what is safe, what to do. */

import type { Citation } from "../../core/chat/citation.ts";
import type { SyncKind } from "../../core/sync/syncStatus.ts";
import { count } from "./count.ts";
import { kept } from "./kept.ts";
import { LOCALE } from "./locale.ts";

export const conversation = {
  untitled: "New conversation",
  deleted: "This conversation was deleted, here or on another device.",
  deletedKept: "What you had not sent is kept: the next new conversation begins with it.",
  earlier: (n: number) =>
    n === 1 ? "Show the earlier message" : `Show earlier messages (${n.toLocaleString(LOCALE)})`,
  memoryFull: (n: number) =>
    `Nothing more is remembered from this chat: it has ${n} remembered statements. Delete some under Memory to make room.`,
  ask: "Ask about your documents",
  send: "Send",
  stop: "Stop",
  question: "Question",
  answer: "Answer",
  quoted: "Quoted from your documents",
  /** True of an answer at any time. */
  noAnswer: (citations: number) =>
    citations ? "No assistant answered, so here are the passages that fit best." : "No assistant answered.",
  /** True now; empty if one can be asked. `available`: whether an assistant is set up, where it is known. */
  noAssistant,
  kept: "No new answer came, so this one is kept.",
  /** `came`: the answer so far. */
  stopped: (came: string) => (came.trim() ? "Stopped. What came is kept." : "Stopped."),
  failed: (came: string) =>
    came.trim() ? "This answer broke off. What came is kept." : "This answer broke off before it began.",
  interrupted: "This answer was interrupted. What came is kept.",
  unanswered: "This question was not answered. Ask it again.",
  elsewhere: "Being answered in another window or on another device…",
  thinking: "Reading your documents…",
  waits: (seconds: number) =>
    `The assistant cannot answer yet, and is asked again after ${count(seconds, "second", "seconds")}.`,
  awaits: (names: readonly string[]) =>
    `Reading ${names.join(", ")}. The answer waits for ${names.length === 1 ? "it" : "them"}.`,
  answerNow: (n: number) => (n === 1 ? "Answer without it" : "Answer without them"),
  addFile: "Add a file",
  borrow: "Add a document",
  borrowNone: "All your documents are in this conversation.",
  borrowed: "Documents of this conversation",
  unread: "A FREE account's questions do not look into documents.",
  borrowedCount: (n: number) => count(n, "document", "documents"),
  giveBack: (name: string) => `Return ${name}: this conversation no longer sees it`,
  sources: "Sources",
  source: ({ filename, page }: Citation) => (page === undefined ? filename : `${filename}, page ${page}`),
  actions: "What to do with this answer",
  copy: "Copy",
  copied: "Copied",
  again: "Answer again",
  edit: "Edit and ask again",
  editCancel: "Leave as it was",
  editSend: "Ask again",
  told: "What the assistant was told",
  wouldBeTold: "What an assistant would be told",
  later: "Let the assistant answer when it can",
  laterOn: "The assistant will answer when it can.",
  laterOff: "Do not wait for it",
  mode: "How to answer",
  analysis: "Analysis",
  authoritative: "Authoritative",
  authoritativeHint: "Answers from the documents alone, with their pages",
  authoritativeTier: "Authoritative answers belong to JIGGA accounts",
  emptyTitle: "What would you like to know?",
  empty: `Ask something, or drop a file here. ${kept}`,
  found: (names: readonly string[]) =>
    names.length === 1
      ? `Found '${names[0]}' among your documents. Include it?`
      : `Found ${names.map((name) => `'${name}'`).join(", ")} among your documents. Include them?`,
  include: "Include",
  includeOne: (name: string) => `Include ${name}`,
  notNow: "Not now",
} as const;

/** The server may have got an assistant since it last spoke with this browser. */
function noAssistant(available: boolean | undefined, kind?: SyncKind): string {
  if (kind === "signed-out") return "This browser is signed out: none can be asked.";
  if (available) return "";
  if (available === false) return "None is set up.";
  return "The server has not said yet whether one is set up.";
}
