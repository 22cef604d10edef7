/** Sentences of what the assistant's model does behind the answers. */

import type { SyncKind } from "../../core/sync/syncStatus.ts";
import { count, moment } from "./count.ts";
import { LOCALE } from "./locale.ts";

export const jobs = {
  title: "In the background",
  hint: "After an answer the assistant notes what is worth remembering. That never keeps an answer waiting.",
  noAssistant:
    "Nothing is drawn from your conversations: no assistant is set up. What you add by hand is remembered all the same.",
  off: "Nothing is drawn from your conversations: whoever runs this server has switched it off. What you add by hand is remembered all the same.",
  on: (model: string | null, today: number, daily: number) =>
    `${model ?? "The assistant"} notes what is worth remembering. ` +
    `${today.toLocaleString(LOCALE)} of ${count(daily, "question", "questions")} a day ${today === 1 ? "was" : "were"} asked today.`,
  spent: (daily: number) =>
    `All ${count(daily, "question", "questions")} of today were asked. What waits goes on after midnight (UTC).`,
  counts: (waiting: number, running: number) =>
    waiting + running === 0
      ? "Nothing waits."
      : `${count(waiting, "message waits", "messages wait")}, ${running.toLocaleString(LOCALE)} under way.`,
  failedTitle: "What failed",
  noFailed: "Nothing has failed.",
  next: (n: number, due: string) =>
    `Tried ${count(n, "time", "times")} without success. ` +
    (Date.parse(due) > Date.now() ? `It is tried again on ${moment(due)}.` : "It is tried again soon."),
  kinds: { extract: "Noting what was said", summarise: "Summary" },
  attempts: (n: number) => `Given up after ${count(n, "attempt", "attempts")}.`,
  retry: "Try again",
  retryOf: (what: string) => `Try again: ${what}`,
  retryAll: "Try all again",
  retried: "It is tried again now.",
  refresh: "Look again",
  away: (kind?: SyncKind) =>
    `The server has to tell this, and ${kind === "signed-out" ? "this browser is signed out: sign in again" : "it does not answer"}. ` +
    "Nothing is lost meanwhile.",
  gone: "something that was deleted",
} as const;
