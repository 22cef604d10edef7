import { QUOTES } from "./citation.ts";
import type { EpisodeDoc } from "../schema/rows.ts";

/** An answer gives way to one that is worth as much: a model's, what came of one, quotations, nothing. */
export function answerPriority({
  aiResponse,
  status,
  model,
}: Pick<EpisodeDoc, "aiResponse" | "status" | "model">): number {
  if (model === QUOTES) return 1;
  if (status === "done") return 3;
  return aiResponse && model ? 2 : 0;
}
