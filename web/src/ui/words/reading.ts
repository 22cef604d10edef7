/** Sentences where a document or a passage of it is read. Short and concrete: what happened, what is safe, what to do. */

import { LOCALE } from "./locale.ts";

export const reading = {
  back: "All documents",
  loading: "Loading the text",
  gone: "This document is not here. It was deleted, or it has not come to this device yet.",
  textComing: "The text is on its way to this device.",
  page: (n: number) => `Page ${n.toLocaleString(LOCALE)}`,
  jump: "Go to page",
  text: "Text",
  passage: "Cited passage",
  passageGone: "The passage is no longer in this document.",
  open: "Open the document here",
  close: "Close the passage",
  sessions: "Conversations that use it",
  noSessions: "No conversation uses it: it is not searched until one does.",
  lend: "Use it in a conversation",
  choose: "Choose a conversation",
  giveBack: (title: string) => `Take it out of ${title}`,
  unknownSession: "A conversation that is not on this device yet",
} as const;
