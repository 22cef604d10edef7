/** Sentences of what an assistant was told. Short and concrete. */

import { count } from "./count.ts";
import { LOCALE } from "./locale.ts";

const percent = new Intl.NumberFormat(LOCALE, { style: "percent", maximumSignificantDigits: 2 });

type Kind = "facts" | "turns" | "memories" | "passages";

export const prompt = {
  title: "What the assistant was told",
  gone: "What the assistant was told for this answer is no longer here: it is kept until the app is closed.",
  made: "Put together on this device, of what is here now: nothing of it was sent. An assistant would be told this before your question.",
  making: "Putting it together",
  cannot: "This can be put together once the model that finds by meaning is on this device.",
  copy: "Copy all of it",
  copied: "Copied",
  state: "What is known",
  volatile: "Conversation and memory",
  rag: "Documents",
  system: "Instructions",
  used: (used: number, budget: number) => `${percent.format(budget ? used / budget : 0)} of the room for it`,
  hint: "An assistant can be told only so much at once: there is room of its own for each of these.",
  /** By what it is. */
  dropped: ({ facts, turns, memories, passages }: Record<Kind, readonly string[]>) => {
    const left = [
      facts.length && count(facts.length, "fact", "facts"),
      turns.length && count(turns.length, "earlier message", "earlier messages"),
      memories.length && `${memories.length.toLocaleString(LOCALE)} remembered`,
      passages.length && count(passages.length, "passage", "passages"),
    ].filter(Boolean);
    return left.length ? `Left out, as there was no room: ${left.join(", ")}.` : "Everything fitted.";
  },
  passages: "Passages it was given",
  close: "Close",
} as const;
