/**
 * Which answers a language model may read. Quotation answers repeat documents that another session may not have borrowed,
 * and "not found" answers say nothing: their user finds both by search, but they enter no prompt. Mirrors
 * server/vademecum/model/chat/answers.py; shared cases: tests/conformance/answers.json.
 */

import { QUOTES } from "./citation.ts";
import { NOT_FOUND } from "./notFoundAnswer.ts";
import type { EpisodeDoc } from "../schema/rows.ts";
import { storedSentences } from "./storedSentences.ts";

const MARKUP = /^[ \t\r\n"'“”‘’*_`>]+/u;

export function entersPrompts({ model, aiResponse }: Pick<EpisodeDoc, "model" | "aiResponse">): boolean {
  const said = aiResponse.replace(MARKUP, "");
  return model !== QUOTES && !said.startsWith(NOT_FOUND) && !said.startsWith(storedSentences.noDocuments);
}
