/**
 * What was remembered beside quotations, as people read it: kept in rows is the assistant's word for a conversation (see
 * memorySection.ts).
 */

import { QUOTES } from "./citation.ts";
import type { EpisodeDoc } from "../schema/rows.ts";

const PLACE = /^(> — \d{4}-\d{2}-\d{2}, )session (?=")/gmu;

export function answerDisplayText({ aiResponse, model }: Pick<EpisodeDoc, "aiResponse" | "model">): string {
  return model === QUOTES ? aiResponse.replace(PLACE, "$1conversation ") : aiResponse;
}
