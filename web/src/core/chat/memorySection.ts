/**
 * The memory section at the end of a quotation answer. It quotes memories, which are not cited as sources.
 */

import { snippet } from "../text/snippet.ts";
import type { RecalledMemory } from "./prompt.ts";
import { stripMarkdown } from "../text/stripMarkdown.ts";
import { looksSecret } from "../secrets/secretHeuristics.ts";
import { blockquote } from "./quotationAnswer.ts";

const HEADING = "Remembered, not from your documents:";
const WIDTH = 240;
const BLANKS = /\s+/gu;

/** Return the memory section as Markdown, or an empty string if no memories remain. */
export function memorySection(query: string, recalled: readonly RecalledMemory[]): string {
  // The section is stored in another turn, so skip memories that may contain secrets.
  const lines = recalled
    // Only memories that are turns contain Markdown.
    .map((one) => ({ ...one, said: one.turn === undefined ? one.text : stripMarkdown(one.text) }))
    .filter(({ text, said, session }) => !looksSecret(`${text}\n${said}\n${session}`));
  if (lines.length === 0) return "";
  const remembered = lines.map(({ date, session, said }) => {
    // Keep quotation and place in one paragraph, because a bracketed number on its own would be read as a
    // citation.
    const quote = snippet(said, query, WIDTH).replace(BLANKS, " ");
    return blockquote(`${quote}\n— ${date}, ${session.replace(BLANKS, " ")}`);
  });
  return [`**${HEADING}**`, ...remembered].join("\n\n");
}
