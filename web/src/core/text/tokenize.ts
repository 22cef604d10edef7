/**
 * Fold text and split it into search terms. This module mirrors server/vademecum/model/text/tokenize.py, which explains
 * the rules; both are tested with tests/conformance/ranking.json.
 */

import { limitMarkRuns } from "./normalization.ts";
import { ASSIGNED, classBody, isAscii, mapAssigned, MARKS } from "./unicode14.ts";

const MAX_TERM_LENGTH = 64;

/** Accents whose omission does not produce a different word. */
const ACCENTS =
  "300-36f 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 640 64b-65f 670 1ab0-1ace 1dc0-1dff 20d0-20f0 fe20-fe2f";
/** Invisible characters: soft hyphen, joiners, fillers, variation selectors, direction marks. */
const INVISIBLE =
  "ad 61c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-2064 2066-206f 3164 fe00-fe0f feff ffa0 " +
  "1bca0-1bca3 1d173-1d17a e0001 e0020-e007f e0100-e01ef";
const DROPPED = new RegExp(`[${classBody(ACCENTS)}${classBody(INVISIBLE)}]+`, "gu");
/** Letters that Unicode does not decompose but that people type in several ways. */
const RESPELLED: Record<string, string> = {
  ...{ ß: "ss", æ: "ae", œ: "oe", þ: "th", ς: "σ", ø: "o", đ: "d" },
  ...{ ð: "d", ł: "l", ħ: "h", ı: "i", ى: "ي", ی: "ي", ک: "ك" },
};
const IS_RESPELLED = new RegExp(`[${Object.keys(RESPELLED).join("")}]`, "g");
/**
 * Characters of scripts without spaces, and Hangul, whose particles attach to words. Runs of them are indexed as
 * bigrams.
 */
const DENSE =
  "\\u0e00-\\u0eff\\u1000-\\u109f\\u1100-\\u11ff\\u1780-\\u17ff\\u3005\\u3007\\u3040-\\u31bf\\u31f0-\\u31ff\\u3400-\\u4dbf" +
  "\\u4e00-\\u9fff\\ua960-\\ua97f\\uac00-\\ud7ff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
/** English function words. A query ignores them if it has other words. */
export const STOP_WORDS = new Set(
  (
    "a an and are as at be been but by did do does for from had has have how i in is it its of on or s that the " +
    "their they this to was were what when where which who whom whose why will with would"
  ).split(" "),
);
const STEMMABLE = /^[a-z]{4,}$/;
const LETTER = `[[\\p{L}\\p{N}]&&[${classBody(ASSIGNED)}]]`;
/** Pattern of a word. A mark continues a word but never starts one. */
const WORD = `${LETTER}[${LETTER}${classBody(MARKS)}]*`;
/** Characters that join words to a compound: co-worker, PASS_MAX_DAYS, resolv.conf, 1.12, 1,250. */
const JOINER = "(?:[\\-._\u2010]|(?<=[0-9]),(?=[0-9]))";
const ASCII_COMPOUND = new RegExp(`[a-z0-9]+(?:${JOINER}[a-z0-9]+)*`, "g");
const COMPOUND = new RegExp(`${WORD}(?:${JOINER}${WORD})*`, "gv");
const JOINERS = /[-._\u2010,]/;
/**
 * Joiners that are dropped, so that a compound matches its spelling as one word (coworker, 1250); 1.12 stays.
 */
const DROPPABLE_JOINER = /(?<![0-9])[-._\u2010]|[-._\u2010](?![0-9])|,/g;
const RUN = new RegExp(`([${DENSE}]+)|[^${DENSE}]+`, "gu");
/** The whitespace of Python's `split()`, which includes the ASCII separators, unlike that of JavaScript. */
const WHITESPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

interface Run {
  text: string;
  isDense: boolean;
}

/** Fold a text: remove differences in case, accents, widths and typographic variants. */
export function fold(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  return mapAssigned(limitMarkRuns(text), foldAssigned);
}

function foldAssigned(text: string): string {
  const lower = text.normalize("NFKD").replace(DROPPED, "").toLowerCase().replace(DROPPED, "");
  // Limit the runs of marks again, because a dropped character may have separated two runs.
  return limitMarkRuns(lower.replace(IS_RESPELLED, (letter) => RESPELLED[letter]!)).normalize("NFKC");
}

/** Return a key that is equal for texts that differ only in case, accents, widths and whitespace. */
export function duplicateKey(text: string): string {
  return fold(text).split(WHITESPACE).filter(Boolean).join(" ");
}

/** Return the terms of a text in order. Dense runs yield their characters and their bigrams. */
export function tokenize(text: string): string[] {
  return runs(text).flatMap(({ text, isDense }) => (isDense ? [...text, ...bigrams(text)] : [stem(text)]));
}

/** Return the distinct terms of a query in order. Stop words are omitted unless the query has no other words. */
export function tokenizeQuery(text: string): string[] {
  const all = runs(text);
  const distinctive = all.filter(({ text }) => !STOP_WORDS.has(text));
  const terms = (distinctive.length ? distinctive : all).flatMap(({ text, isDense }) => {
    if (!isDense) return [stem(text)];
    const pairs = bigrams(text);
    return pairs.length ? pairs : [text];
  });
  return [...new Set(terms)];
}

/** Return an English word without its common endings. */
function stem(word: string): string {
  if (!STEMMABLE.test(word)) return word;
  let base = stripSuffix(singular(word));
  if (base.endsWith("ly") && base.length > 5) base = base.slice(0, -2);
  if (base.endsWith("e") && base.length > 3) base = base.slice(0, -1);
  return base.endsWith("y") && base.length > 3 ? base.slice(0, -1) + "i" : base;
}

function singular(word: string): string {
  if (word.endsWith("ies")) return word.slice(0, -3) + "y";
  if (word.endsWith("sses")) return word.slice(0, -2);
  return /[^sui]s$/.test(word) ? word.slice(0, -1) : word;
}

/** Remove -ing or -ed if a word remains, and undouble a final consonant (planned → plan). */
function stripSuffix(word: string): string {
  const base = word.replace(/(?:ing|ed)$/, "");
  if (base === word || base.length < 3 || !/[aeiouy]/.test(base)) return word;
  const isDoubled = base.length > 3 && base.at(-1) === base.at(-2) && !/[lsz]$/.test(base);
  return isDoubled ? base.slice(0, -1) : base;
}

/** Return the words of a text. The words of a compound are followed by the whole compound as one word. */
function runs(text: string): Run[] {
  const folded = fold(text);
  const compounds = folded.match(isAscii(folded) ? ASCII_COMPOUND : COMPOUND) ?? [];
  return compounds.flatMap((compound) => {
    const words = compound.split(JOINERS);
    const found = words.flatMap(splitDense);
    const isName = words.length > 1 && words.some((word) => !STOP_WORDS.has(word));
    if (isName && !found.some(({ isDense }) => isDense)) {
      found.push({ text: truncate(compound.replace(DROPPABLE_JOINER, "")), isDense: false });
    }
    return found;
  });
}

function splitDense(word: string): Run[] {
  if (isAscii(word)) return [{ text: truncate(word), isDense: false }];
  return Array.from(word.matchAll(RUN), ([text, dense]) =>
    dense === undefined ? { text: truncate(text), isDense: false } : { text, isDense: true },
  );
}

function truncate(word: string): string {
  return word.length > MAX_TERM_LENGTH ? [...word].slice(0, MAX_TERM_LENGTH).join("") : word;
}

function bigrams(run: string): string[] {
  const characters = [...run];
  return characters.slice(1).map((character, at) => characters[at]! + character);
}
