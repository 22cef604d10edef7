/** The assistant that the server speaks to, if one is set up there. Its key and address never come here. */

import { STREAM_IDLE_TIMEOUT_MS, withIdleTimeout } from "../../lib/idleTimeout.ts";
import { openResponse, requestJson, type Server } from "../../lib/http.ts";
import { SseParser } from "../../lib/sse.ts";
import type { SectionBudgets, SectionIds } from "../../core/chat/prompt.ts";
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
  budget: SectionBudgets;
  dropped: SectionIds;
  /** Where memory was looked up, null for a session that is new to the server, and what of it is in the prompt. */
  scope: {
    memory: MemoryScope | null;
    recalled: { kind: "episodes" | "memories" | "entities" | "summaries"; id: string }[];
    notice: string | null;
  };
  model: string | null;
}

/** Why an answer ends that is not at its end. */
const CUT_REASONS = ["length", "content_filter"];

interface AnswerListener {
  onContext(told: PromptSummary): void;
  onDelta(text: string): void;
  /** The text so far was the model's reasoning. */
  onRestart(): void;
}

/** Who asks waits for it: a server that does not say so at once is as good as away. */
const ASSISTANT_TIMEOUT_MS = 2_000;

export function fetchAssistant(server: Server): Promise<Assistant> {
  return requestJson<Assistant>(server, "/v1/assistant", {
    signal: AbortSignal.timeout(ASSISTANT_TIMEOUT_MS),
  });
}

/** How an answer ended: whole, where it was as long as it may be, or broken off. */
export type AnswerEnding = "whole" | "cut" | "broken";

/** Throws what the server refuses before the first word. */
export function streamAnswer(
  server: Server,
  question: Question,
  listener: AnswerListener,
  signal: AbortSignal,
  silenceMs = STREAM_IDLE_TIMEOUT_MS,
): Promise<AnswerEnding> {
  return withIdleTimeout(silenceMs, signal, (ended, heard) =>
    readStream(server, question, listener, { signal, ended, heard }),
  );
}

interface StreamSignals {
  /** Whoever asked stops it. */
  signal: AbortSignal;
  /** That, or the silence. */
  ended: AbortSignal;
  heard: () => void;
}

async function readStream(
  server: Server,
  question: Question,
  listener: AnswerListener,
  { signal, ended, heard }: StreamSignals,
): Promise<AnswerEnding> {
  const init = { method: "POST", body: JSON.stringify(question), signal: ended };
  const response = await openResponse(server, "/v1/answer", init);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const events = new SseParser();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      heard();
      for (const { event, data } of events.feed(read.value)) {
        const given = JSON.parse(data);
        if (event === "context") listener.onContext(given as PromptSummary);
        else if (event === "delta") listener.onDelta((given as { text: string }).text);
        else if (event === "restart") listener.onRestart();
        else if (event === "failed") return "broken";
        else if (event === "done")
          return CUT_REASONS.includes((given as { finish: string }).finish) ? "cut" : "whole";
      }
    }
  } catch (error) {
    if (signal.aborted) throw error;
  }
  return "broken";
}
