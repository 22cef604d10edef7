/**
 * An answer without a model: the passages that fit best, quoted. It says what it is, and never more than it found.
 */

import { citation, type Citation } from "./citation.ts";
import { excerpt } from "../text/snippet.ts";
import type { Found } from "../documents/passageIndex.ts";
import { readableOf } from "../text/stripMarkdown.ts";
import { verbatim } from "../text/escapeMarkdown.ts";
import { written } from "./storedSentences.ts";

export const QUOTED = 4;

export interface Quoted {
  aiResponse: string;
  citations: Citation[];
}

/** `[1]` after a quotation names the first citation. */
export function quoted(query: string, { results, searched, byMeaning }: Found): Quoted {
  if (searched.length === 0) return { aiResponse: written.noDocuments, citations: [] };
  const shown = results.slice(0, QUOTED);
  const said = shown.map(({ filename, text }, at) => {
    const [read = ""] = readableOf(filename, text);
    return `${quotation(excerpt(read, query))}\n>\n> [${at + 1}]`;
  });
  if (shown.length === 0) said.push(written.notFound(searched));
  if (!byMeaning) said.push(written.wordsOnly);
  return { aiResponse: said.join("\n\n"), citations: shown.map(citation) };
}

/** As Markdown that cannot be anything but a quotation, and shows the text as it is. */
export function quotation(text: string): string {
  return verbatim(text)
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");
}
