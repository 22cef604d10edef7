/** Client of the server's assistant. The LLM's key and address never leave the server. */

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
  /** Id of the turn to answer. The prompt excludes this turn and later ones. */
  episodeId: string;
}

/** Summary of the contents of a prompt. */
export interface PromptSummary {
  citations: {
    /** The number of the passage in the prompt. */
    n: number;
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
  /**
   * The memory scope, and the rows from memory that entered the prompt. The scope is null for a chat that is new to the
   * server.
   */
  scope: {
    memory: MemoryScope | null;
    recalled: { kind: "episodes" | "memories" | "entities" | "summaries"; id: string }[];
    notice: string | null;
  };
  model: string | null;
}

/** Finish reasons of truncated answers. */
const CUT_REASONS = ["length", "content_filter"];

interface AnswerListener {
  onContext(told: PromptSummary): void;
  onDelta(text: string): void;
  /** Callback for the end of the model's reasoning. The text received before it is not part of the answer. */
  onRestart(): void;
}

/**
 * Time limit for the request of the assistant's status. The user waits for the response, so a slow server counts as
 * unreachable.
 */
const ASSISTANT_TIMEOUT_MS = 2_000;

export function fetchAssistant(server: Server): Promise<Assistant> {
  return requestJson<Assistant>(server, "/v1/assistant", {
    signal: AbortSignal.timeout(ASSISTANT_TIMEOUT_MS),
  });
}

/** How an answer ended: complete, truncated (see CUT_REASONS), or interrupted. */
export type AnswerEnding = "whole" | "cut" | "broken";

/** Stream an answer to `listener`, and return how it ended. Throw the server's error if it rejects the question. */
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
  /** Signal that aborts when the user stops the answer. */
  signal: AbortSignal;
  /** Signal that aborts when the user stops the answer, or after the idle timeout. */
  ended: AbortSignal;
  /** Function that restarts the idle timeout. */
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
