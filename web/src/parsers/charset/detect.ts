/**
 * Decode bytes to text. The encoding is found by a byte order mark, by valid UTF-8, by a declaration in the text, or by
 * the letters of a language. The steps are those of server/vademecum/engines/files/charset/detect.py, which uses
 * statistics as its last step. A file that needs the last step waits for the server.
 */

import { Unreadable } from "../result.ts";

/** Encodings with the non-ASCII letters of a language. If several fit equally well, the first one is used. */
const ALPHABETS = [
  ["windows-1252", "äöüßéà"],
  ["windows-1252", "àâæçéèêëîïôœùûüÿ"],
  ["windows-1252", "áéíïóúüñçªº"],
  ["windows-1252", "áàâãçéêíóôõúüªº"],
  ["windows-1252", "àèéìòùî"],
  ["windows-1252", "äáàâéèêëïíîóôöúû"],
  ["windows-1252", "åäöéàü"],
  ["windows-1252", "æøåéèêóòôöäü"],
  ["windows-1252", "áðéíóúýþæö"],
  ["windows-1250", "ąćęłńóśźż"],
  ["windows-1250", "áäčďéěíĺľňóôŕřšťúůýž"],
  ["windows-1250", "áéíöóőúüű"],
  ["windows-1250", "čćđšž"],
  ["windows-1254", "çğıİöşüâîû"],
] as const;
const PUNCTUATION = "\u00a0\u00ad€„“”‘’…–—•‹›«»¿¡°§©®™·´²³½¼¾×±£";
/** Pattern of bytes that are not Latin letters: no language in Latin script has four accented letters in a row. */
const NON_LATIN_RUN = /[\xa1-\xff]{4,}/gu;
/** Latin letters and symbols. Plausible UTF-16 text consists of these and of one of the groups of scripts below. */
const LATIN =
  "\\t\\n\\f\\r -~\\xa0-\\u024f\\u0300-\\u036f\\u1e00-\\u1eff\\u2000-\\u2bff\\ufeff\\u{1f000}-\\u{1faff}";
const NOT_IN_GROUP = [
  "\\u0370-\\u058f\\u1f00-\\u1fff", // Greek, Cyrillic, Armenian
  "\\u0590-\\u06ff\\ufb1d-\\ufdff\\ufe70-\\ufefc", // Hebrew, Arabic
  "\\u0900-\\u10ff", // India, South-East Asia, Georgia
  "\\u3000-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7a3\\uf900-\\ufaff\\uff00-\\uffef", // China, Japan, Korea
].map((letters) => new RegExp(`[^${LATIN}${letters}]`, "gu"));
/** Characters that are never the majority of a text. */
const RARE = /[\u0100-\u024f\u0300-\u036f\u2000-\u2bff]/gu;
const IDEOGRAPH = /[\u3400-\u9fff]/gu;
const OTHER_CJK = /[\u3000-\u30ff\uac00-\ud7a3\uff00-\uffef]/gu;
/** Minimum length in characters for the detection of UTF-16. A shorter text does not have enough characters. */
const UTF16_MIN = 8;
const ZEROS = /\0/gu;
const DECLARATION = /(?:encoding|charset|coding)[:= ]{1,10}["']?([a-z0-9_-]+)/giu;
const IMPOSSIBLE = new Set(["utf-16le", "utf-16be", "x-user-defined"]);
/** Escape sequence of ISO-2022-JP, an encoding that is used in mail. */
const ISO_2022_JP = /\x1b\$[@B]/u;
const ESCAPE = 0x1b;
const SAMPLE = 1_000_000;
const HEAD = 100_000;
/** Pattern of a character that is overstruck: followed by a backspace. */
const OVERSTRIKE = /[^\n\b][\b]/gu;
/** Control characters of terminals and old systems, such as the bell and the end of a file. */
const CONTROL = /[\0-\x07\x0e-\x1a]/gu;
const CONTROL_SHARE = 0.02;

/** Decode text in an unknown encoding. A few control characters become spaces. Throw Unreadable for binary data. */
export function decode(data: Uint8Array): string {
  const text = decodeWithMark(data) ?? decodeWithoutMark(data);
  const plain = text.replace(OVERSTRIKE, "");
  if (isBinary(plain, text.length)) throw new Unreadable("UNSUPPORTED_TYPE");
  return plain.replace(CONTROL, " ").replaceAll("\b", " ");
}

/** Decode Latin-1. Each byte becomes the character with this code point. */
export function latin1(data: Uint8Array): string {
  let text = "";
  for (let start = 0; start < data.length; start += 8192)
    text += String.fromCharCode(...data.subarray(start, start + 8192));
  return text;
}

function isBinary(text: string, length: number): boolean {
  let controls = 0;
  for (const _ of text.matchAll(CONTROL)) if (++controls > Math.max(1, length * CONTROL_SHARE)) return true;
  return false;
}

function decodeWithMark(data: Uint8Array): string | null {
  const mark = latin1(data.subarray(0, 4));
  if (mark === "\xff\xfe\0\0" || mark === "\0\0\xfe\xff") throw new Unreadable("NEEDS_SERVER"); // UTF-32
  if (mark.startsWith("\xff\xfe")) return decodeStrict(data, "utf-16le");
  if (mark.startsWith("\xfe\xff")) return decodeStrict(data, "utf-16be");
  return mark.startsWith("\xef\xbb\xbf") ? decodeStrict(data, "utf-8") : null;
}

/** Decode data with a byte order mark. Throw Unreadable if the data is not valid in `encoding`. */
function decodeStrict(data: Uint8Array, encoding: string): string {
  const text = tryDecode(data, encoding);
  if (text === null) throw new Unreadable("DAMAGED");
  return text;
}

function tryDecode(data: Uint8Array, encoding: string): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(data);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

function decodeWithoutMark(data: Uint8Array): string {
  const text =
    (data.includes(ESCAPE) && ISO_2022_JP.test(latin1(data)) ? tryDecode(data, "iso-2022-jp") : null) ??
    tryDecode(data, "utf-8");
  if (text !== null) {
    const hasManyZeros = count(ZEROS, text) > Math.max(1, text.length * CONTROL_SHARE);
    return (hasManyZeros ? decodeUtf16(data) : null) ?? text;
  }
  if (data.includes(0)) {
    const utf16 = decodeUtf16(data);
    if (utf16 === null) throw new Unreadable("UNSUPPORTED_TYPE"); // audio, images, programs
    return utf16;
  }
  const declared = declaredEncoding(data);
  if (declared && declared !== "utf-8") return new TextDecoder(declared).decode(data);
  const utf8 = new TextDecoder().decode(data);
  if (isMostlyValid(utf8)) return utf8;
  const encoding = detectByLetters(latin1(data.subarray(0, SAMPLE)));
  if (encoding) return decodeCodePage(data, encoding);
  const raw = latin1(data.subarray(0, HEAD));
  throw new Unreadable(isBinary(raw, raw.length) ? "UNSUPPORTED_TYPE" : "NEEDS_SERVER");
}

/**
 * Decode UTF-16 without a byte order mark, or return null. In the right byte order, the characters belong to few blocks
 * of Unicode. In the wrong byte order, they belong to many blocks, or to blocks that do not occur together.
 */
function decodeUtf16(data: Uint8Array): string | null {
  let [best, fewest] = [null as string | null, Infinity];
  for (const [encoding, half] of [
    ["utf-16be", 0],
    ["utf-16le", 1],
  ] as const) {
    const text = tryDecode(data, encoding);
    if (text === null || text.length < UTF16_MIN || !isWriting(text.slice(0, HEAD))) continue;
    const blocks = new Set(data.subarray(0, 2 * HEAD).filter((_, index) => index % 2 === half)).size;
    if (blocks <= fewest) [best, fewest] = [text, blocks];
  }
  return best;
}

/**
 * Return whether a text that was decoded as UTF-16 is plausible. If the data is ASCII, two characters are decoded as
 * one ideograph. Such ideographs never have a low byte above 0x7f, and rarely have CJK punctuation between them.
 */
function isWriting(text: string): boolean {
  const few = Math.floor(text.length / 50);
  if (count(RARE, text) * 2 > text.length) return false;
  if (Math.min(...NOT_IN_GROUP.map((pattern) => count(pattern, text))) > few) return false;
  const ideographs = text.match(IDEOGRAPH) ?? [];
  if (ideographs.length <= few) return true;
  const nonAscii = ideographs.filter((ideograph) => ideograph.charCodeAt(0) & 0x80).length;
  return count(OTHER_CJK, text) * 50 >= text.length && nonAscii * 4 >= ideographs.length;
}

function count(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0;
}

/**
 * Return the encoding that a page or source file declares, or null. Ignore encodings in which the declaration itself
 * could not be read.
 */
function declaredEncoding(data: Uint8Array): string | null {
  for (const [, name] of latin1(data.subarray(0, 8192)).matchAll(DECLARATION)) {
    try {
      const { encoding } = new TextDecoder(name!.toLowerCase());
      if (!IMPOSSIBLE.has(encoding)) return encoding;
    } catch (error) {
      // A RangeError means that the browser does not support this encoding, which is then ignored.
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return null;
}

/** Return whether decoded UTF-8 has few invalid bytes. Text in another encoding has many. */
function isMostlyValid(text: string): boolean {
  const invalid = text.match(/\ufffd/gu)?.length ?? 0;
  const valid = (text.match(/[^\0-\x7f]/gu)?.length ?? 0) - invalid;
  return invalid * 2 <= valid;
}

/** Return the encoding in which almost all non-ASCII bytes are letters of one language in Latin script, or null. */
function detectByLetters(bytes: string): string | null {
  const counts = new Map<string, number>();
  for (const [byte] of bytes.matchAll(/[\x80-\xff]/gu)) counts.set(byte, (counts.get(byte) ?? 0) + 1);
  const total = [...counts.values()].reduce((sum, n) => sum + n, 0);
  const few = Math.floor(total / 50); // tolerated, because a text may contain some foreign names
  const nonLatin = bytes.match(NON_LATIN_RUN)?.join("").length ?? 0;
  if (nonLatin > few) return null;
  let [best, fewest] = [null as string | null, few + 1];
  for (const [encoding, alphabet] of ALPHABETS) {
    const letters = new Set(PUNCTUATION + alphabet + alphabet.toUpperCase());
    let foreign = 0;
    for (const [byte, n] of counts) {
      const letter = decodeCodePage(Uint8Array.of(byte.charCodeAt(0)), encoding);
      if (!letters.has(letter)) foreign += n;
    }
    if (foreign < fewest) [best, fewest] = [encoding, foreign];
  }
  return best;
}

/** Decode a Windows code page. Replace the control characters that browsers return for its undefined bytes. */
function decodeCodePage(data: Uint8Array, encoding: string): string {
  return new TextDecoder(encoding).decode(data).replace(/[\x80-\x9f]/gu, "\ufffd");
}
