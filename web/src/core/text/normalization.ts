/**
 * Normalize text before it is chunked, counted or embedded. This module mirrors
 * server/vademecum/model/text/normalization.py, which explains the rules; both are tested with
 * tests/conformance/normalization.json.
 */

import { classBody, isAscii, mapAssigned, MARKS } from "./unicode14.ts";

const MAX_MARK_RUN = 30;

const LONE_SURROGATE = /[\ud800-\udfff]/gu;
const LINE_END = /\r\n|[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]/g;
const DROPPED = /[\ufeff\u200b]/g;
const MARK = `[${classBody(MARKS)}]`;
const LONG_RUN = new RegExp(`(${MARK}{${MAX_MARK_RUN}})${MARK}+`, "gu");
// NFKD turns the halfwidth kana voicing signs into marks. It does this with no other characters outside `MARK`.
const COMPAT_MARK = `(?:${MARK}|[\uff9e\uff9f])`;
const LONG_COMPAT_RUN = new RegExp(`(${COMPAT_MARK}{${MAX_MARK_RUN}})${COMPAT_MARK}+`, "gu");
// Blanks, control characters, joiners, the replacement character, and the mark that stands for a blank in word pieces.
const BLANKS = /[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u2581\u3000\ufeff\ufffd]+/gu;
const ASTRAL_HAN = /[\u{20000}-\u{3ffff}]/gu;

/** Return the normalized form of a text. */
export function normalize(text: string): string {
  const lines = text.replace(LONE_SURROGATE, "\ufffd").replaceAll("\0", "\ufffd").replace(LINE_END, "\n");
  if (isAscii(lines)) return lines;
  const short = lines.replace(DROPPED, "").replace(LONG_RUN, "$1");
  const composed = mapAssigned(short, (run) => run.normalize("NFC"));
  return composed.replace(LONG_RUN, "$1");
}

/** Shorten long runs of combining marks, so that NFKD and NFKC take linear time. */
export function limitMarkRuns(text: string): string {
  return isAscii(text) ? text : text.replace(LONG_COMPAT_RUN, "$1");
}

/**
 * Rewrite text that the Python and JavaScript tokenizers treat differently. The result is tokenized, never
 * stored.
 */
export function prepareForTokenizer(text: string): string {
  return text.replaceAll("\u03a3", "\u03c3").replace(ASTRAL_HAN, " $& ");
}

/** Rewrite text as the normalizer of the multilingual tokenizers does. The result is tokenized, never stored. */
export function prepareForUnigram(text: string): string {
  const composed = mapAssigned(limitMarkRuns(text), (run) =>
    run.replace(/[^\uff5e]+/gu, (part) => part.normalize("NFKC")),
  );
  return composed.replace(BLANKS, " ").trim();
}
