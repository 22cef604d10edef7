/**
 * Decide which answers enter prompts. Quotation answers do not, because they repeat documents that another session may
 * not have borrowed. "Not found" answers do not, because they contain no information.
 *
 * `entersPrompts` mirrors server/vademecum/model/chat/answers.py, which explains the rules; both are tested with
 * tests/conformance/answers.json.
 */

import { QUOTES } from "./citation.ts";
import { NO_DOCUMENTS, NOT_FOUND } from "./notFoundAnswer.ts";
import type { EpisodeDoc } from "../schema/rows.ts";

/**
 * Return the ids of the documents that an answer uses: the quoted ones, or those whose passages the assistant received.
 * Passages have no numbers in a prompt, so an assistant cannot say which of them it used. A "not found" answer uses none.
 */
export function usedDocuments(answer: Pick<EpisodeDoc, "model" | "aiResponse" | "citations">): string[] {
  const isUsing = answer.model === QUOTES || entersPrompts(answer);
  return isUsing ? answer.citations.map(({ documentId }) => documentId) : [];
}

const MARKUP = /^[ \t\r\n"'“”‘’*_`>]+/u;

export function entersPrompts({ model, aiResponse }: Pick<EpisodeDoc, "model" | "aiResponse">): boolean {
  const said = aiResponse.replace(MARKUP, "");
  return model !== QUOTES && !said.startsWith(NOT_FOUND) && !said.startsWith(NO_DOCUMENTS);
}
