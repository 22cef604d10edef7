/**
 * What the format of a cell makes of its number, as who opens the workbook sees it: a percentage, leading zeros, a
 * currency, a day. Else a number keeps the digits that are stored, by which it is found: none is added, none rounded away,
 * and no separators come between them. The rules are those of server/vademecum/engines/files/formats/ooxml/number_formats.py.
 */

import { CURRENCY, SYMBOLS } from "./currencies.ts";
import { dated, type Look } from "./date_formats.ts";
import { elements, find, type XmlNode } from "../../markup/xml.ts";

const FORMAT = /^.{0,255}$/su; // Excel has no longer ones
/** Formats that every program knows by their numbers. Those of currencies mean another in each country. */
const BUILT_IN: [string, string][] = [
  ["9", "0%"],
  ["10", "0.00%"],
  ["14", "mm-dd-yy"],
  ["15", "d-mmm-yy"],
  ["16", "d-mmm"],
  ["17", "mmm-yy"],
  ["18", "h:mm AM/PM"],
  ["19", "h:mm:ss AM/PM"],
  ["20", "h:mm"],
  ["21", "h:mm:ss"],
  ["22", "m/d/yy h:mm"],
  ["45", "mm:ss"],
  ["46", "[h]:mm:ss"],
  ["47", "mmss.0"],
];
const DIGITS = 15; // Excel shows no more
const PERCENT_MAX = 1e15;
const MARK = "¤";
// Each piece of a format but those that stand for digits, days and times: the currencies first, named in three ways; then
// other letters that are shown; then what only takes room, colours, languages, and the halves of a day.
const ENDS_IN_SYMBOL = new RegExp(`[${SYMBOLS}]$`, "u");
const PIECE = new RegExp(
  [
    String.raw`"[ \xa0]*(${CURRENCY})[ \xa0]*"`,
    String.raw`\[\$[ \xa0]*(?:(${CURRENCY})[ \xa0]*(?=[\]\-]))?[^\]]*\]`,
    String.raw`\\?([${SYMBOLS}])`,
    String.raw`("[^"]*"?|\\.?)`,
    String.raw`[_*].?|\[(?![<>=]|(?:[hH]{1,2}|[mM]{1,2}|[sS]{1,2})\])[^\]]*\]?|[aA][mM]/[pP][mM]|[aA]/[pP]`,
  ].join("|"),
  "gsu",
);
const DIGIT = /[0#?]|General/u;
const DECIMALS = /\.([0#?]{0,30})/u; // Excel has no more
const SCALED = /[0#?],+(?![0#?,])/u; // a comma behind the digits divides by a thousand
const ZEROS = /^ *(0{2,30}) *$/u;
const WHOLE = /^(-?)(\d+)$/u;

/** The first of a format. `pattern`: without what is only shown, its currencies as a mark each. */
interface Section {
  pattern: string;
  currency: string | undefined;
}

/** By the number of a cell's style. */
export function looks(styles: XmlNode, since1904: boolean): Look[] {
  const formats = find(styles, "x:numFmts");
  const codes = new Map(BUILT_IN);
  for (const { attributes } of formats ? elements(formats) : [])
    codes.set(attributes.get("numFmtId") ?? "", attributes.get("formatCode") ?? "");
  const known = new Map([...codes].map(([number, code]) => [number, look(code, since1904)]));
  const cells = find(styles, "x:cellXfs");
  return (cells ? elements(cells) : []).map(
    ({ attributes }) => known.get(attributes.get("numFmtId") ?? "") ?? stored,
  );
}

function look(code: string, since1904: boolean): Look {
  if (!FORMAT.test(code)) return stored;
  const section = sectionOf(code);
  return dated(section.pattern, since1904) ?? ofNumbers(section);
}

export function stored(_: number, plain: string): string {
  return plain;
}

/**
 * Without a format, as Python spells it, which is what the server stores. Digits behind the fifteenth are what a sum of
 * fractions leaves, and shown by no program.
 */
export function spelled(value: string): string {
  if (!/[.e]/iu.test(value)) return String(BigInt(value));
  const shown = Number(Number(value).toPrecision(DIGITS));
  const number = Number.isFinite(shown) ? shown : Number(value);
  const size = Math.abs(number);
  if (size && (size < 1e-4 || size >= 1e16)) return number.toExponential().replace(/e([+-])(\d)$/u, "e$10$2");
  return String(number);
}

function sectionOf(code: string): Section {
  const currencies: string[] = [];
  const bare = code.replace(PIECE, (_, quoted?: string, named?: string, symbol?: string, shown?: string) => {
    const currency = quoted ?? named ?? symbol;
    if (currency !== undefined) currencies.push(currency);
    return currency !== undefined ? MARK : shown !== undefined ? " " : "";
  });
  const [pattern = ""] = bare.split(";");
  return { pattern, currency: pattern.includes(MARK) ? currencies[0] : undefined };
}

/** A section of some numbers only ([<1]0%), or that shows thousands as ones, says nothing of the number stored. */
function ofNumbers({ pattern, currency }: Section): Look {
  const digit = pattern.search(DIGIT);
  if (digit < 0 || pattern.includes("[") || SCALED.test(pattern)) return stored;
  if (pattern.split("%").length === 2) return percentage(DECIMALS.exec(pattern)?.[1]!.length ?? 0);
  const zeros = ZEROS.exec(pattern)?.[1];
  if (zeros) return padded(zeros.length);
  if (currency === undefined) return stored;
  if (pattern.indexOf(MARK) > digit) return (_, plain) => `${plain} ${currency}`;
  return before(ENDS_IN_SYMBOL.test(currency) ? currency : `${currency} `);
}

function percentage(decimals: number): Look {
  return (number, plain) => {
    if (Math.abs(number) >= PERCENT_MAX) return plain;
    const [digits = "", exponent] = Math.abs(number)
      .toExponential(DIGITS - 1)
      .split("e");
    const shown = shifted(BigInt(digits.replace(".", "")), Number(exponent) - (DIGITS - 1) + 2 + decimals);
    const text = String(shown).padStart(decimals + 1, "0");
    const point = text.length - decimals;
    const sign = number < 0 && shown ? "-" : "";
    return `${sign}${text.slice(0, point)}${decimals ? "." : ""}${text.slice(point)}%`;
  };
}

/** By so many places to the left, or, rounded, to the right. */
function shifted(whole: bigint, places: number): bigint {
  const factor = 10n ** BigInt(Math.abs(places));
  return places < 0 ? (2n * whole + factor) / (2n * factor) : whole * factor;
}

function padded(digits: number): Look {
  return (_, plain) => {
    const [, sign = "", whole = ""] = WHOLE.exec(plain) ?? [];
    return whole ? sign + whole.padStart(digits, "0") : plain;
  };
}

function before(currency: string): Look {
  return (_, plain) => (plain.startsWith("-") ? `-${currency}${plain.slice(1)}` : currency + plain);
}
