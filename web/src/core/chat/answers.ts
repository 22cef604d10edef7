/**
 * Decide which answers enter prompts. Quotation answers do not, because they repeat documents that another session may
 * not have borrowed. "Not found" answers do not, because they contain no information.
 *
 * `entersPrompts` mirrors server/vademecum/model/chat/answers.py, which explains the rules; both are tested with
 * tests/conformance/answers.json.
 */

import { QUOTES, type Citation } from "./citation.ts";
import { citedNumbers } from "./citedNumbers.ts";
import { NO_DOCUMENTS, NOT_FOUND } from "./notFoundAnswer.ts";
import type { EpisodeDoc } from "../schema/rows.ts";

type CitingAnswer = Pick<EpisodeDoc, "model" | "aiResponse" | "citations">;

/** Return the ids of the documents that an answer quotes or cites. A "not found" answer uses none. */
export function usedDocuments(answer: CitingAnswer): string[] {
  return splitCitations(answer).cited.map(({ documentId }) => documentId);
}

/**
 * Return the passages that an answer quotes or cites, in the order in which it cites them, and the other passages of
 * its prompt.
 */
export function splitCitations(answer: CitingAnswer): { cited: Citation[]; others: Citation[] } {
  const { model, aiResponse, citations } = answer;
  if (model === QUOTES) return { cited: citations, others: [] };
  const numbers = entersPrompts(answer) ? citedNumbers(aiResponse) : [];
  const cited = numbers.flatMap((number) => citations.filter(({ n }) => n === number));
  return { cited, others: citations.filter((one) => !cited.includes(one)) };
}

const MARKUP = /^[ \t\r\n"'“”‘’*_`>]+/u;

export function entersPrompts({ model, aiResponse }: Pick<EpisodeDoc, "model" | "aiResponse">): boolean {
  const said = aiResponse.replace(MARKUP, "");
  return model !== QUOTES && !said.startsWith(NOT_FOUND) && !said.startsWith(NO_DOCUMENTS);
}
