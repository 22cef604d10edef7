/**
 * Build quotation answers, which need no language model. They quote the best passages and add no statements
 * of their own.
 */

import { toCitation, type Citation } from "./citation.ts";
import { snippet } from "../text/snippet.ts";
import type { PassageSearchResult } from "../documents/passageIndex.ts";
import { stripMarkdownOf } from "../text/stripMarkdown.ts";
import { escapeMarkdown } from "../text/escapeMarkdown.ts";
import { notice, type Notice } from "./notices.ts";

export const MAX_QUOTED = 4;

export interface QuotationAnswer {
  aiResponse: string;
  citations: Citation[];
  notices: Notice[];
}

/** Return a quotation answer. `[1]` after a quotation refers to the first citation. */
export function quotationAnswer(
  query: string,
  { results, searched, byMeaning }: PassageSearchResult,
): QuotationAnswer {
  if (searched.length === 0) return { aiResponse: "", citations: [], notices: [notice("no_documents")] };
  const shown = results.slice(0, MAX_QUOTED);
  const said = shown.map(({ filename, text }, at) => {
    const [read = ""] = stripMarkdownOf(filename, text);
    return `${blockquote(snippet(read, query))}\n>\n> [${at + 1}]`;
  });
  const notices = [
    ...(shown.length === 0 ? [notice("not_found", searched)] : []),
    ...(byMeaning ? [] : [notice("words_only")]),
  ];
  return {
    aiResponse: said.join("\n\n"),
    citations: shown.map((found, at) => toCitation(found, at + 1)),
    notices,
  };
}

/** Return a text as a Markdown blockquote. The text is escaped, so that it is shown literally. */
export function blockquote(text: string): string {
  return escapeMarkdown(text)
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");
}
