/**
 * Ranking: words folded to terms, BM25 over postings, and the fusing of ranked lists: the same as
 * server/vademecum/model/text/ranking.py (the rule is stated there), so that a question has the same answer offline.
 * tests/conformance/ranking.json holds the two together.
 */

import { bounded } from "./normalization.ts";
import { changeKnown, inClass, isAscii, KNOWN, MARKS } from "./unicode14.ts";

/** What the best match in meaning counts for beside the best by words, 1. */
const MEANING = 1.0;
/** How many hits of each arm are fused. */
export const DEPTH = 100;
/** Of the best score: below it, what a word may name does not go first. */
const NAMED_MIN = 0.6;
/** What a row takes of the scores of the rows one and two places away. */
const SHARES = [0.5, 0.25];
/** BM25's constants: how soon repeats stop counting, and how much a long chunk's length is held against it. */
const K1 = 1.2;
const B = 0.75;
/** A longer "word" is a blob; its beginning is enough to find it again. */
const LONGEST_TERM = 64;
/** Scores are compared after rounding to this many digits, so that a last bit never decides an order. */
const DIGITS = 6;
const MOST_COUNTED = 0xffff;

/** Accents that may go without making another word. */
const ACCENTS =
  "300-36f 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 640 64b-65f 670 1ab0-1ace 1dc0-1dff 20d0-20f0 fe20-fe2f";
/** What is invisible inside words: soft hyphen, joiners, fillers, variation selectors, signs of direction. */
const INVISIBLE =
  "ad 61c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-2064 2066-206f 3164 fe00-fe0f feff ffa0 " +
  "1bca0-1bca3 1d173-1d17a e0001 e0020-e007f e0100-e01ef";
const DROPPED = new RegExp(`[${inClass(ACCENTS)}${inClass(INVISIBLE)}]+`, "gu");
/** What Unicode does not take apart but people type as something else. */
const SPELT = new Map<string, string>([
  ...([
    ["ß", "ss"],
    ["æ", "ae"],
    ["œ", "oe"],
    ["þ", "th"],
    ["ς", "σ"],
    ["ø", "o"],
    ["đ", "d"],
  ] as const),
  ...([
    ["ð", "d"],
    ["ł", "l"],
    ["ħ", "h"],
    ["ı", "i"],
    ["ى", "ي"],
    ["ی", "ي"],
    ["ک", "ك"],
  ] as const),
]);
const IS_SPELT = new RegExp(`[${[...SPELT.keys()].join("")}]`, "g");
/** Scripts written without spaces, and Hangul, whose particles cling to the words: cut into pairs of characters. */
const DENSE =
  "\\u0e00-\\u0eff\\u1000-\\u109f\\u1100-\\u11ff\\u1780-\\u17ff\\u3005\\u3007\\u3040-\\u31bf\\u31f0-\\u31ff\\u3400-\\u4dbf" +
  "\\u4e00-\\u9fff\\ua960-\\ua97f\\uac00-\\ud7ff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
/** Words that make a question and say nothing of what is asked. */
export const STOP_WORDS = new Set(
  (
    "a an and are as at be been but by did do does for from had has have how i in is it its of on or s that the " +
    "their they this to was were what when where which who whom whose why will with would"
  ).split(" "),
);
const STEMMED = /^[a-z]{4,}$/;
const LETTER = `[[\\p{L}\\p{N}]&&[${inClass(KNOWN)}]]`;
/** A mark belongs to a word, but never begins one. */
const WORD = `${LETTER}[${LETTER}${inClass(MARKS)}]*`;
/** What makes one name of the words on both sides: co-worker, PASS_MAX_DAYS, resolv.conf, 1.12, 1,250. */
const SIGN = "(?:[\\-._\u2010]|(?<=[0-9]),(?=[0-9]))";
const ASCII_NAME = new RegExp(`[a-z0-9]+(?:${SIGN}[a-z0-9]+)*`, "g");
const NAME = new RegExp(`${WORD}(?:${SIGN}${WORD})*`, "gv");
const SIGNS = /[-._\u2010,]/;
/** Without its signs a name is what others write in one word (coworker, 1250), but 1.12 is not 112. */
const SILENT = /(?<![0-9])[-._\u2010]|[-._\u2010](?![0-9])|,/g;
const RUN = new RegExp(`([${DENSE}]+)|[^${DENSE}]+`, "gu");
/** As Python's `split()` has them; JavaScript's own differ in the separators of ASCII. */
const BLANKS = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/** Case, accents, widths and typographic variants folded away. */
export function fold(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  return changeKnown(bounded(text), foldKnown);
}

function foldKnown(text: string): string {
  const lower = text.normalize("NFKD").replace(DROPPED, "").toLowerCase().replace(DROPPED, "");
  // Bounded again, for what was dropped may have stood between two runs of marks.
  return bounded(lower.replace(IS_SPELT, (letter) => SPELT.get(letter)!)).normalize("NFKC");
}

/** The terms a chunk is found by, in order. Dense runs give their characters and their pairs of characters. */
export function terms(text: string): string[] {
  return runs(text).flatMap(([run, dense]) => (dense ? [...run, ...pairs(run)] : [stem(run)]));
}

/**
 * The distinct terms of a question, in order, without stop words if anything else is asked. Single dense characters
 * only where nothing stands beside them.
 */
export function queryTerms(text: string): string[] {
  const all = runs(text);
  const telling = all.filter(([run]) => !STOP_WORDS.has(run));
  const found = (telling.length ? telling : all).flatMap(([run, dense]) => {
    if (!dense) return [stem(run)];
    const couples = pairs(run);
    return couples.length ? couples : [run];
  });
  return [...new Set(found)];
}

/** An English word without its common endings. Crude, but the same for question and text. */
function stem(word: string): string {
  if (!STEMMED.test(word)) return word;
  let left = withoutEnding(singular(word));
  if (left.endsWith("ly") && left.length > 5) left = left.slice(0, -2);
  if (left.endsWith("e") && left.length > 3) left = left.slice(0, -1);
  return left.endsWith("y") && left.length > 3 ? left.slice(0, -1) + "i" : left;
}

function singular(word: string): string {
  if (word.endsWith("ies")) return word.slice(0, -3) + "y";
  if (word.endsWith("sses")) return word.slice(0, -2);
  return /[^sui]s$/.test(word) ? word.slice(0, -1) : word;
}

/** Without -ing or -ed, if a word is left; a consonant doubled for it (planned) is single again. */
function withoutEnding(word: string): string {
  const left = word.replace(/(?:ing|ed)$/, "");
  if (left === word || left.length < 3 || !/[aeiouy]/.test(left)) return word;
  const doubled = left.length > 3 && left.at(-1) === left.at(-2) && !/[lsz]$/.test(left);
  return doubled ? left.slice(0, -1) : left;
}

/** The words of a text, and behind the words of a name the name: each of its words is found in other places, too. */
function runs(text: string): [run: string, dense: boolean][] {
  const folded = fold(text);
  const plain = isAscii(folded);
  return (folded.match(plain ? ASCII_NAME : NAME) ?? []).flatMap((name) => {
    const words = name.split(SIGNS);
    const found = words.flatMap((word) => (plain ? [whole(word)] : pieces(word)));
    const told = words.length > 1 && words.some((word) => !STOP_WORDS.has(word));
    if (told && found.every(([, dense]) => !dense)) found.push(whole(name.replace(SILENT, "")));
    return found;
  });
}

function pieces(word: string): [run: string, dense: boolean][] {
  return Array.from(word.matchAll(RUN), ([run, dense]) => (dense === undefined ? whole(run) : [run, true]));
}

function whole(word: string): [run: string, dense: boolean] {
  return [beginning(word), false];
}

function beginning(word: string): string {
  return word.length > LONGEST_TERM ? [...word].slice(0, LONGEST_TERM).join("") : word;
}

function pairs(run: string): string[] {
  const characters = [...run];
  return characters.slice(1).map((character, at) => characters[at]! + character);
}

/** Which rows hold which term: those of the term with ordinal i are `rows.slice(starts[i], starts[i + 1])`. */
export class Postings {
  /** How many terms all rows have. */
  readonly total: number;

  private constructor(
    private readonly ordinals: ReadonlyMap<string, number>,
    private readonly starts: Uint32Array,
    private readonly rows: Uint32Array,
    private readonly counts: Uint16Array,
    /** How many terms each row has, repeats counted. */
    readonly lengths: Float64Array,
  ) {
    this.total = sum(lengths);
  }

  /** From plain texts, one a row. */
  static ofTexts(texts: readonly string[]): Postings {
    const found = new Map<string, [row: number, count: number][]>();
    const lengths = new Float64Array(texts.length);
    for (const [row, text] of texts.entries()) {
      for (const [term, times] of counted(terms(text))) {
        const entry: [number, number] = [row, Math.min(times, MOST_COUNTED)];
        lengths[row]! += entry[1];
        const entries = found.get(term);
        if (entries) entries.push(entry);
        else found.set(term, [entry]);
      }
    }
    const ordinals = new Map([...found.keys()].map((term, ordinal) => [term, ordinal]));
    const starts = new Uint32Array(found.size + 1);
    for (const [ordinal, entries] of [...found.values()].entries()) {
      starts[ordinal + 1] = starts[ordinal]! + entries.length;
    }
    const flat = [...found.values()].flat();
    const rows = Uint32Array.from(flat, ([row]) => row);
    return new Postings(
      ordinals,
      starts,
      rows,
      Uint16Array.from(flat, ([, count]) => count),
      lengths,
    );
  }

  /** The rows that hold a term, and how often each does. */
  find(term: string): { rows: Uint32Array; counts: Uint16Array } {
    const ordinal = this.ordinals.get(term);
    const [begin, end] = ordinal === undefined ? [0, 0] : [this.starts[ordinal], this.starts[ordinal + 1]];
    return { rows: this.rows.subarray(begin, end), counts: this.counts.subarray(begin, end) };
  }
}

function counted(all: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const term of all) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}

/**
 * BM25 of the wanted terms for every row of all parts, one part's rows after the other's. Only these rows count for
 * how rare a term and how long a chunk is: another scope, another statistic.
 */
export function bm25(parts: readonly Postings[], wanted: readonly string[]): Float64Array {
  const rows = sum(parts.map((part) => part.lengths.length));
  const average = sum(parts.map((part) => part.total)) / rows || 1;
  const scores = new Float64Array(rows);
  for (const term of wanted) {
    const found = parts.map((part) => part.find(term));
    const holding = sum(found.map((entries) => entries.rows.length));
    const rarity = Math.log1p((rows - holding + 0.5) / (holding + 0.5));
    let begin = 0;
    for (const [number, entries] of found.entries()) {
      const { lengths } = parts[number]!;
      for (let at = 0; at < entries.rows.length; at++) {
        const row = entries.rows[at]!;
        const count = entries.counts[at]!;
        const damping = K1 * (1 - B + (B * lengths[row]!) / average);
        scores[begin + row]! += (rarity * count * (K1 + 1)) / (count + damping);
      }
      begin += lengths.length;
    }
  }
  return scores;
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}

/** A score as it is compared: rounded as numpy rounds, halves to the even neighbour. */
export function rounded(score: number): number {
  const scaled = score * 10 ** DIGITS;
  const nearest = Math.round(scaled);
  const half = nearest - scaled === 0.5 && nearest % 2 !== 0;
  return (half ? nearest - 1 : nearest) / 10 ** DIGITS;
}

/** The positions of the k highest scores above the floor and of all that tie with the last of them; unsorted. */
export function best(scores: Float64Array, k: number, floor = -Infinity): number[] {
  const above: number[] = [];
  for (let at = 0; at < scores.length; at++) if (scores[at]! > floor) above.push(at);
  if (above.length <= k) return above;
  if (k < 1) return [];
  const compared = new Float64Array(above.length);
  for (let at = 0; at < above.length; at++) compared[at] = rounded(scores[above[at]!]!);
  const last = compared.slice().sort()[above.length - k]!;
  return above.filter((_, at) => compared[at]! >= last);
}

/**
 * Each row's score with a share of its neighbours': rows in order, neighbours only within one group. For turns of a
 * conversation, where an answer seldom repeats the words of what it answers.
 */
export function lift(scores: Float64Array, groups: readonly (string | number)[]): Float64Array {
  const shared = scores.map((score) => (Number.isFinite(score) ? score : 0));
  const lifted = scores.slice();
  for (const [before, share] of SHARES.entries()) {
    const away = before + 1;
    for (let at = away; at < scores.length; at++) {
      if (groups[at] !== groups[at - away]) continue;
      lifted[at]! += share * shared[at - away]!;
      lifted[at - away]! += share * shared[at]!;
    }
  }
  return lifted;
}

type Scored = readonly [key: string, score: number];

/** Scores rescaled so that the best is 1 and `zero`, or else the lowest of them, is 0. */
export function relative(hits: readonly Scored[], zero?: number): [key: string, score: number][] {
  const scores = hits.map(([, score]) => score);
  const lowest = zero ?? Math.min(...scores);
  const span = Math.max(...scores) - lowest;
  return hits.map(([key, score]) => [key, span > 0 ? (score - lowest) / span : 1]);
}

/**
 * Relative score fusion: the k keys with the highest weighted mean of their scores, 0 where a list lacks them. Equal
 * scores keep the order in which the keys are first met, list by list.
 */
export function fuse(
  lists: readonly (readonly Scored[])[],
  weights: readonly number[],
  k: number,
): [key: string, score: number][] {
  if (lists.length !== weights.length) throw new RangeError("Each list has a weight.");
  const total = sum(weights) || 1;
  const scores = new Map<string, number>();
  for (const [number, hits] of lists.entries()) {
    const weight = weights[number]!;
    if (weight <= 0) continue;
    for (const [key, score] of hits) scores.set(key, (scores.get(key) ?? 0) + (weight * score) / total);
  }
  const compared = (score: number): number => Number(score.toFixed(12));
  const ordered = [...scores].sort(([, a], [, b]) => compared(b) - compared(a));
  return ordered.slice(0, Math.max(k, 0));
}

/** Whether what a word may name fits the question about as well as the best of all that was found. */
export function goesFirst(key: string, hits: readonly Scored[]): boolean {
  const best = hits.reduce((most, [, score]) => Math.max(most, score), 0);
  return (new Map(hits).get(key) ?? 0) >= NAMED_MIN * best;
}

/** Both lists in one, each once: the best of either in turn, and the first begins. */
export function byTurns(first: readonly string[], second: readonly string[]): string[] {
  const longest = Math.max(first.length, second.length);
  const pairs = Array.from({ length: longest }, (_, at) => [first[at], second[at]]);
  return [...new Set(pairs.flat().filter((key) => key !== undefined))];
}

/** The k best of what the words fit and what is near in meaning: BM25 and cosines, best first, `DEPTH` of each. */
export function hybrid(
  words: readonly Scored[],
  meaning: readonly Scored[],
  k: number,
  weight = MEANING,
): [key: string, score: number][] {
  return fuse([relative(words, 0), relative(meaning)], [1, weight], k);
}

/** Equal for texts that differ only in case, accents, widths and blanks: such chunks say the same. */
export function sameText(text: string): string {
  return fold(text).split(BLANKS).filter(Boolean).join(" ");
}
