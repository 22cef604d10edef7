/**
 * Format the percentages, padded numbers, amounts of money and dates of a workbook as Excel displays them. Any other
 * number keeps its stored digits, without rounding or separators, so that a search finds it. The rules are those of
 * server/vademecum/engines/files/formats/ooxml/number_formats.py.
 */

import { CURRENCY, SYMBOLS } from "./currencies.ts";
import { dateFormatter, type Formatter } from "./date_formats.ts";
import { elements, find, type XmlNode } from "../../markup/xml.ts";

/** Pattern of a format that is not longer than Excel allows. */
const FORMAT = /^.{0,255}$/su;
/** Numbers and codes of the built-in formats. Those for currencies are left out, because they depend on the country. */
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
/** Number of significant digits in Excel. */
const DIGITS = 15;
const PERCENT_MAX = 1e15;
const CURRENCY_MARK = "¤";
const ENDS_IN_SYMBOL = new RegExp(`[${SYMBOLS}]$`, "u");
// The pieces of a format except digits, dates and times: a currency in one of three notations, literal text, and
// padding, colors, languages, AM and PM.
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
const DECIMALS = /\.([0#?]{0,30})/u; // Excel allows at most 30 decimals
const SCALED = /[0#?],+(?![0#?,])/u; // a comma after the last digit divides the number by a thousand
const ZEROS = /^ *(0{2,30}) *$/u;
const WHOLE = /^(-?)(\d+)$/u;

/** The first section of a format. In `pattern`, literal text is removed and a mark replaces each currency. */
interface Section {
  pattern: string;
  currency: string | undefined;
}

/** Return the formatter of each cell style. The index in the array is the number of the style. */
export function numberFormatters(styles: XmlNode, since1904: boolean): Formatter[] {
  const formats = find(styles, "x:numFmts");
  const codes = new Map(BUILT_IN);
  for (const { attributes } of formats ? elements(formats) : [])
    codes.set(attributes.get("numFmtId") ?? "", attributes.get("formatCode") ?? "");
  const formatters = new Map([...codes].map(([number, code]) => [number, formatterOf(code, since1904)]));
  const cells = find(styles, "x:cellXfs");
  return (cells ? elements(cells) : []).map(
    ({ attributes }) => formatters.get(attributes.get("numFmtId") ?? "") ?? unformatted,
  );
}

function formatterOf(code: string, since1904: boolean): Formatter {
  if (!FORMAT.test(code)) return unformatted;
  const section = sectionOf(code);
  return dateFormatter(section.pattern, since1904) ?? numberFormatter(section);
}

export function unformatted(_: number, plain: string): string {
  return plain;
}

/**
 * Return the text of a number without a format. It is the same text as Python's, which the server stores. Digits after
 * the fifteenth are removed, because they are rounding errors, which no program displays.
 */
export function plainNumber(value: string): string {
  if (!/[.e]/iu.test(value)) return String(BigInt(value));
  const rounded = Number(Number(value).toPrecision(DIGITS));
  const number = Number.isFinite(rounded) ? rounded : Number(value);
  const size = Math.abs(number);
  if (size && (size < 1e-4 || size >= 1e16)) return number.toExponential().replace(/e([+-])(\d)$/u, "e$10$2");
  return String(number);
}

function sectionOf(code: string): Section {
  const currencies: string[] = [];
  const patterns = code.replace(
    PIECE,
    (_, quoted?: string, bracketed?: string, symbol?: string, literal?: string) => {
      const currency = quoted ?? bracketed ?? symbol;
      if (currency !== undefined) currencies.push(currency);
      return currency !== undefined ? CURRENCY_MARK : literal !== undefined ? " " : "";
    },
  );
  const [pattern = ""] = patterns.split(";");
  return { pattern, currency: pattern.includes(CURRENCY_MARK) ? currencies[0] : undefined };
}

/**
 * Return the formatter of a section. Conditional sections such as `[<1]0%`, scaled sections and sections without digits
 * leave numbers unformatted.
 */
function numberFormatter({ pattern, currency }: Section): Formatter {
  const digit = pattern.search(DIGIT);
  if (digit < 0 || pattern.includes("[") || SCALED.test(pattern)) return unformatted;
  if (pattern.split("%").length === 2) return percentFormatter(DECIMALS.exec(pattern)?.[1]!.length ?? 0);
  const zeros = ZEROS.exec(pattern)?.[1];
  if (zeros) return paddedFormatter(zeros.length);
  if (currency === undefined) return unformatted;
  if (pattern.indexOf(CURRENCY_MARK) > digit) return (_, plain) => `${plain} ${currency}`;
  return prefixFormatter(ENDS_IN_SYMBOL.test(currency) ? currency : `${currency} `);
}

function percentFormatter(decimals: number): Formatter {
  return (number, plain) => {
    if (Math.abs(number) >= PERCENT_MAX) return plain;
    const [digits = "", exponent] = Math.abs(number)
      .toExponential(DIGITS - 1)
      .split("e");
    const scaled = shift(BigInt(digits.replace(".", "")), Number(exponent) - (DIGITS - 1) + 2 + decimals);
    const text = String(scaled).padStart(decimals + 1, "0");
    const point = text.length - decimals;
    const sign = number < 0 && scaled ? "-" : "";
    return `${sign}${text.slice(0, point)}${decimals ? "." : ""}${text.slice(point)}%`;
  };
}

/** Multiply a number by ten to the power of `places`. For negative `places`, round the result. */
function shift(whole: bigint, places: number): bigint {
  const factor = 10n ** BigInt(Math.abs(places));
  return places < 0 ? (2n * whole + factor) / (2n * factor) : whole * factor;
}

function paddedFormatter(digits: number): Formatter {
  return (_, plain) => {
    const [, sign = "", whole = ""] = WHOLE.exec(plain) ?? [];
    return whole ? sign + whole.padStart(digits, "0") : plain;
  };
}

function prefixFormatter(currency: string): Formatter {
  return (_, plain) => (plain.startsWith("-") ? `-${currency}${plain.slice(1)}` : currency + plain);
}
