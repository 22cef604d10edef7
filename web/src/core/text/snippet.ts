/** Select the part of a passage to quote: the sentences that contain the most query terms. */

import { truncate } from "../../lib/truncate.ts";
import { tokenizeQuery, tokenize } from "./tokenize.ts";

const WIDTH = 480;
const SENTENCE = /[^.!?。！？\n]+[.!?。！？]*[ \t]*|[.!?。！？\n]+/gu;

/** Return whole sentences of `text`, about `width` characters, with "…" where text is omitted. */
export function snippet(text: string, query: string, width = WIDTH): string {
  if (text.length <= width) return text;
  const asked = new Set(tokenizeQuery(query));
  const sentences = text.match(SENTENCE) ?? [text];
  const found = sentences.map((sentence) => new Set(tokenize(sentence).filter((term) => asked.has(term))));
  let best = { weight: -1, first: 0, end: 0 };
  for (let first = 0; first < sentences.length; first++) {
    // A window begins with a match or at the start of the text.
    if (first > 0 && !found[first]!.size) continue;
    const end = reach(sentences, first, width);
    const said = new Set(found.slice(first, end).flatMap((terms) => [...terms]));
    const weight = [...said].reduce((sum, term) => sum + term.length, 0);
    if (weight > best.weight) best = { weight, first, end };
  }
  const shown = sentences.slice(best.first, best.end).join("").trim();
  const cut =
    shown.length > width ? `${truncate(shown, shown.lastIndexOf(" ", width) + 1 || width).trim()}` : shown;
  const isEnd = best.end === sentences.length && cut === shown;
  return `${best.first > 0 ? "… " : ""}${cut}${isEnd ? "" : " …"}`;
}

/** Return the end of the window that begins at sentence `first`. A window has at least one sentence. */
function reach(sentences: readonly string[], first: number, width: number): number {
  let end = first;
  for (let used = 0; end < sentences.length; end++) {
    used += sentences[end]!.length;
    if (used > width && end > first) break;
  }
  return end;
}
