/**
 * Convert a stored answer for display. The memory section of a quotation answer (see memorySection.ts) contains the
 * word "session", as prompts do; users see "conversation" instead.
 */

import { QUOTES } from "./citation.ts";
import type { EpisodeDoc } from "../schema/rows.ts";

const PLACE = /^(> — \d{4}-\d{2}-\d{2}, )session (?=")/gmu;

export function answerDisplayText({ aiResponse, model }: Pick<EpisodeDoc, "aiResponse" | "model">): string {
  return model === QUOTES ? aiResponse.replace(PLACE, "$1conversation ") : aiResponse;
}
