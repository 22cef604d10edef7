/**
 * Decide which answers enter prompts. Quotation answers do not, because they repeat documents that another session may
 * not have borrowed. "Not found" answers do not, because they contain no information.
 *
 * This module mirrors server/vademecum/model/chat/answers.py, which explains the rules; both are tested with
 * tests/conformance/answers.json.
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
