/** Sentences of what an assistant was told. Short and concrete. */

import { count } from "./count.ts";

export const prompt = {
  title: "What went into the prompt",
  gone: "What went into this prompt is no longer here: it is kept until the app is closed.",
  state: "What is known",
  volatile: "Conversation and memory",
  rag: "Documents",
  system: "Instructions",
  used: (used: number, budget: number) => `${used.toLocaleString()} of ${budget.toLocaleString()} tokens`,
  dropped: (n: number) => `${count(n, "piece", "pieces")} did not fit and were left out`,
  nothingDropped: "Everything fitted.",
  passages: "Passages it was given",
  close: "Close",
} as const;
