/**
 * An answer without a model: the passages that fit best, quoted. It says what it is, and never more than it found.
 */

import { toCitation, type Citation } from "./citation.ts";
import { snippet } from "../text/snippet.ts";
import type { PassageSearchResult } from "../documents/passageIndex.ts";
import { stripMarkdownOf } from "../text/stripMarkdown.ts";
import { escapeMarkdown } from "../text/escapeMarkdown.ts";
import { storedSentences } from "./storedSentences.ts";

export const MAX_QUOTED = 4;

export interface QuotationAnswer {
  aiResponse: string;
  citations: Citation[];
}

/** `[1]` after a quotation names the first citation. */
export function quotationAnswer(
  query: string,
  { results, searched, byMeaning }: PassageSearchResult,
): QuotationAnswer {
  if (searched.length === 0) return { aiResponse: storedSentences.noDocuments, citations: [] };
  const shown = results.slice(0, MAX_QUOTED);
  const said = shown.map(({ filename, text }, at) => {
    const [read = ""] = stripMarkdownOf(filename, text);
    return `${blockquote(snippet(read, query))}\n>\n> [${at + 1}]`;
  });
  if (shown.length === 0) said.push(storedSentences.notFound(searched));
  if (!byMeaning) said.push(storedSentences.wordsOnly);
  return { aiResponse: said.join("\n\n"), citations: shown.map(toCitation) };
}

/** As Markdown that cannot be anything but a quotation, and shows the text as it is. */
export function blockquote(text: string): string {
  return escapeMarkdown(text)
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");
}
