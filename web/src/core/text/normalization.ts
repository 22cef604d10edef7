/**
 * One spelling for every text, the same as server/vademecum/model/text/normalization.py gives it (the rule is stated there):
 * before a text is cut, counted or embedded. tests/conformance/normalise.json holds the two together.
 */

import { changeKnown, inClass, isAscii, MARKS } from "./unicode14.ts";

const MARK_RUN = 30;

const LONE_SURROGATE = /[\ud800-\udfff]/gu;
const LINE_END = /\r\n|[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]/g;
const DROPPED = /[\ufeff\u200b]/g;
const MARK = `[${inClass(MARKS)}]`;
const LONG_RUN = new RegExp(`(${MARK}{${MARK_RUN}})${MARK}+`, "gu");
// NFKD makes marks of the voicing signs of narrow kana, too, the only ones that are none before.
const MARK_TO_BE = `(?:${MARK}|[\uff9e\uff9f])`;
const LONG_RUN_TO_BE = new RegExp(`(${MARK_TO_BE}{${MARK_RUN}})${MARK_TO_BE}+`, "gu");
const ASTRAL_HAN = /[\u{20000}-\u{3ffff}]/gu;

/** The one spelling of `text`. */
export function normalise(text: string): string {
  const lines = text.replace(LONE_SURROGATE, "\ufffd").replaceAll("\0", "\ufffd").replace(LINE_END, "\n");
  if (isAscii(lines)) return lines;
  const short = lines.replace(DROPPED, "").replace(LONG_RUN, "$1");
  const composed = changeKnown(short, (stretch) => stretch.normalize("NFC"));
  return composed.replace(LONG_RUN, "$1");
}

/** No run of marks longer than `normalise` leaves, so that NFKD and NFKC take time in proportion. */
export function bounded(text: string): string {
  return isAscii(text) ? text : text.replace(LONG_RUN_TO_BE, "$1");
}

/** Mend what the Python and JavaScript tokenizers spell differently. Only on the way into one, never stored. */
export function forTokenizer(text: string): string {
  return text.replaceAll("\u03a3", "\u03c3").replace(ASTRAL_HAN, " $& ");
}
