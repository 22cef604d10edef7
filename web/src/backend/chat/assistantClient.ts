/** The assistant that the server speaks to, if one is set up there. Its key and address never come here. */

import { STREAM_SILENCE_MS, unlessSilent } from "../../lib/idleTimeout.ts";
import { open, request, type Wire } from "../../lib/http.ts";
import { Events } from "../../lib/sse.ts";
import type { Allowed, Ids } from "../../core/chat/prompt.ts";
import type { MemoryScope } from "../../core/memory/scope.ts";

export interface Assistant {
  available: boolean;
  model: string | null;
}

interface Question {
  query: string;
  sessionId: string;
  /** This turn and those after it are not told. */
  episodeId: string;
}

/** What went into the prompt. */
export interface PromptSummary {
  citations: {
    documentId: string;
    filename: string;
    page?: number;
    block: number;
    chunkIndex: number;
    text: string;
  }[];
  tokens: { system: number; state: number; volatile: number; rag: number };
  budget: Allowed;
  dropped: Ids;
  /** Where memory was looked up, null for a session that is new to the server, and what of it is in the prompt. */
  scope: {
    memory: MemoryScope | null;
    recalled: { kind: "episodes" | "memories" | "entities" | "summaries"; id: string }[];
    notice: string | null;
  };
  model: string | null;
}

/** Why an answer ends that is not at its end. */
const CUT = ["length", "content_filter"];

interface AnswerListener {
  context(told: PromptSummary): void;
  delta(text: string): void;
  /** The text so far was the model's reasoning. */
  restart(): void;
}

/** Who asks waits for it: a server that does not say so at once is as good as away. */
const ASSISTANT_MS = 2_000;

export function assistant(wire: Wire): Promise<Assistant> {
  return request<Assistant>(wire, "/v1/assistant", { signal: AbortSignal.timeout(ASSISTANT_MS) });
}

/** How an answer ended: whole, where it was as long as it may be, or broken off. */
export type Ending = "whole" | "cut" | "broken";

/** Throws what the server refuses before the first word. */
export function answer(
  wire: Wire,
  question: Question,
  listener: AnswerListener,
  signal: AbortSignal,
  silenceMs = STREAM_SILENCE_MS,
): Promise<Ending> {
  return unlessSilent(silenceMs, signal, (ended, heard) =>
    read(wire, question, listener, { signal, ended, heard }),
  );
}

interface Hearing {
  /** Whoever asked stops it. */
  signal: AbortSignal;
  /** That, or the silence. */
  ended: AbortSignal;
  heard: () => void;
}

async function read(
  wire: Wire,
  question: Question,
  listener: AnswerListener,
  { signal, ended, heard }: Hearing,
): Promise<Ending> {
  const init = { method: "POST", body: JSON.stringify(question), signal: ended };
  const response = await open(wire, "/v1/answer", init);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const events = new Events();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      heard();
      for (const { event, data } of events.feed(read.value)) {
        const given = JSON.parse(data);
        if (event === "context") listener.context(given as PromptSummary);
        else if (event === "delta") listener.delta((given as { text: string }).text);
        else if (event === "restart") listener.restart();
        else if (event === "failed") return "broken";
        else if (event === "done")
          return CUT.includes((given as { finish: string }).finish) ? "cut" : "whole";
      }
    }
  } catch (error) {
    if (signal.aborted) throw error;
  }
  return "broken";
}
