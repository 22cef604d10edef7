/** What memory has for a question, as the end of an answer without a model: said to be remembered, and no source. */

import { snippet } from "../text/snippet.ts";
import type { RecalledMemory } from "./prompt.ts";
import { stripMarkdown } from "../text/stripMarkdown.ts";
import { looksSecret } from "../secrets/secretHeuristics.ts";
import { blockquote } from "./quotationAnswer.ts";
import { storedSentences } from "./storedSentences.ts";

const WIDTH = 240;
const BLANKS = /\s+/gu;

/** As Markdown; empty if there is nothing. */
export function memorySection(query: string, recalled: readonly RecalledMemory[]): string {
  // What is said here is stored in another turn: a secret must not get there.
  const lines = recalled
    .map((one) => ({ ...one, said: one.turn === undefined ? one.text : stripMarkdown(one.text) })) // a turn is Markdown
    .filter(({ text, said, session }) => !looksSecret(`${text}\n${said}\n${session}`));
  if (lines.length === 0) return "";
  const remembered = lines.map(({ date, session, said }) => {
    // In one paragraph with its place: a number in brackets that stands alone would be taken for a citation.
    const quote = snippet(said, query, WIDTH).replace(BLANKS, " ");
    return blockquote(`${quote}\n— ${date}, ${session.replace(BLANKS, " ")}`);
  });
  return [`**${storedSentences.remembered}**`, ...remembered].join("\n\n");
}
