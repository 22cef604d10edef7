/** Sentences of what is remembered. Short and concrete: what happened, what is safe, what to do. */

import type { SyncKind } from "../../core/sync/syncStatus.ts";
import { count, moment } from "./count.ts";
import { bytes } from "./measures.ts";
import { LOCALE } from "./locale.ts";

interface Receipt {
  rows: number;
  files: number;
  bytes: number;
  at: string;
  checked: number;
  leftovers: number;
}

export const memory = {
  title: "Memory",
  facts: "Facts",
  factsHint:
    "What the assistant takes as given, in every conversation that is about it. What it proposes itself counts once you confirm it.",
  noFacts: "Nothing is noted yet. Facts come from your conversations, or you add them here.",
  add: "Add a fact",
  key: "About",
  keyHint: "Such as user.name",
  value: "What is true",
  changedMeanwhile: (fact: string) => `This was changed since you began to write. It says now: ${fact}`,
  confirm: "Confirm",
  confirmed: "Confirmed",
  edit: "Edit",
  delete: "Delete",
  of: (verb: string, key: string) => `${verb}: ${key}`,
  sourceRemoved: "Source removed",
  from: (filename: string) => `From ${filename}`,
  sure: (confidence: number) =>
    `${confidence.toLocaleString(LOCALE, { style: "percent", maximumFractionDigits: 0 })} sure`,
  parts: "Parts of memory",
  remembered: "Remembered",
  entities: "Who and what",
  timeline: "Timeline",
  background: "In the background",
  statements: "Remembered statements",
  statementsHint:
    "What was said and is worth keeping. What was said lately comes to mind first; the rest fades, unless it is pinned.",
  noStatements: "No statements are remembered yet.",
  noStatementsFit: "No statement fits these words and this place.",
  search: "Search statements",
  where: "Where",
  everywhere: "Everywhere",
  inPool: "In no project",
  inProject: (name: string) => `In ${name}`,
  addStatement: "Remember something",
  statement: "What to remember",
  statementWhere: "Who sees it",
  byYou: "By you",
  byAssistant: "Drawn from a conversation",
  said: (source: string, on: string) => `${source} on ${on}`,
  inSession: "said in",
  sourceGone: "its conversation was deleted",
  pin: "Pin",
  unpin: "Unpin",
  pinned: "Pinned: does not fade",
  fades: {
    fresh: (since: string) => `Remembered ${since}`,
    fading: (since: string) => `Remembered ${since}, fading`,
    faint: (since: string) => `Remembered ${since}, faint by now`,
  },
  earlier: (n: number) => `Said before: ${count(n, "earlier version", "earlier versions")}`,
  useEarlier: "Use the earlier one again",
  useEarlierOf: (text: string) => `Use the earlier one again: ${text}`,
  deletedFact: (key: string) => `“${key}” is being deleted.`,
  deletedStatement: "The statement is being deleted, with its earlier versions.",
  more: "Show more",
  forget: "Forget everything",
  forgetHint:
    "Erases every document, conversation, fact and statement, on the server and on all your devices. The account stays. This cannot be undone.",
  forgetAway: (kind?: SyncKind) =>
    kind === "signed-out"
      ? "The server has to do this, and this browser is signed out. Sign in again first."
      : "The server has to do this, and it does not answer. Try again when you are online.",
  forgetType: "To go on, type: forget everything",
  sentence: "forget everything",
  forgetting: "Erasing and checking…",
  receiptTitle: "Everything is forgotten",
  receipt: ({ rows, files, bytes: size, at, leftovers }: Receipt) =>
    `Erased ${count(rows, "entry", "entries")}, ${count(files, "file", "files")}, ${bytes(size)} on ${moment(at)}. ` +
    (leftovers
      ? `Checked: ${count(leftovers, "piece", "pieces")} of it can still be found on the server. Tell whoever runs it. `
      : "Checked: nothing of it is left on the server. ") +
    "Devices that were offline will be cleaned when they connect. Backups made before are not changed.",
  isClean: "This device is clean.",
  isNotClean:
    "This device is not clean yet, as what is kept here could not be removed. What is left here goes when the app is next open and synced.",
  isOpenElsewhere:
    "This device is not clean yet, as another tab of this browser still has this account open: close that tab. What is left here goes when the app is next open and synced.",
  startAfresh: "Start afresh",
  putAway: "Close",
} as const;
