/** The part of a passage that is quoted: the sentences that hold most of what was asked. */

import { truncate } from "../../lib/truncate.ts";
import { tokenizeQuery, tokenize } from "./tokenize.ts";

const WIDTH = 480;
const SENTENCE = /[^.!?。！？\n]+[.!?。！？]*[ \t]*|[.!?。！？\n]+/gu;

/** Whole sentences of `text`, about `width` characters, with "…" where something is left out. */
export function snippet(text: string, query: string, width = WIDTH): string {
  if (text.length <= width) return text;
  const asked = new Set(tokenizeQuery(query));
  const sentences = text.match(SENTENCE) ?? [text];
  const found = sentences.map((sentence) => new Set(tokenize(sentence).filter((term) => asked.has(term))));
  let best = { weight: -1, first: 0, end: 0 };
  for (let first = 0; first < sentences.length; first++) {
    if (first > 0 && !found[first]!.size) continue; // a window begins with a hit, or at the beginning
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

/** Where the window ends that begins at this sentence: at least one is in it. */
function reach(sentences: readonly string[], first: number, width: number): number {
  let end = first;
  for (let used = 0; end < sentences.length; end++) {
    used += sentences[end]!.length;
    if (used > width && end > first) break;
  }
  return end;
}
