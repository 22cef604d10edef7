import { QUOTES } from "./citation.ts";
import type { EpisodeDoc } from "../schema/rows.ts";

/**
 * Return the priority of an answer. Only an answer of the same or a higher priority replaces it. From high to low: a
 * complete model answer, a partial one, quotations, no answer.
 */
export function answerPriority({
  aiResponse,
  status,
  model,
}: Pick<EpisodeDoc, "aiResponse" | "status" | "model">): number {
  if (model === QUOTES) return 1;
  if (status === "done") return 3;
  return aiResponse && model ? 2 : 0;
}
