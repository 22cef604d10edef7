/**
 * Letters out of bytes: what is marked, what is UTF-8, what is said, what a language's letters show. The same steps as
 * server/vademecum/engines/files/charset/detect.py, which then guesses by statistics; here such a file waits for the server.
 */

import { Unreadable } from "../result.ts";

/** What a language writes beyond ASCII. Of two that fit equally well, the first is taken. */
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
const SIGNS = "\u00a0\u00ad€„“”‘’…–—•‹›«»¿¡°§©®™·´²³½¼¾×±£";
const FOREIGN = /[\xa1-\xff]{4,}/gu; // no Latin script has so many accents in a row
/** UTF-16 that does not say so is the writing of one of these families, with Latin letters and signs in it. */
const LATIN =
  "\\t\\n\\f\\r -~\\xa0-\\u024f\\u0300-\\u036f\\u1e00-\\u1eff\\u2000-\\u2bff\\ufeff\\u{1f000}-\\u{1faff}";
const WIDE = [
  "\\u0370-\\u058f\\u1f00-\\u1fff", // Greek, Cyrillic, Armenian
  "\\u0590-\\u06ff\\ufb1d-\\ufdff\\ufe70-\\ufefc", // Hebrew, Arabic
  "\\u0900-\\u10ff", // India, South-East Asia, Georgia
  "\\u3000-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7a3\\uf900-\\ufaff\\uff00-\\uffef", // China, Japan, Korea
].map((letters) => new RegExp(`[^${LATIN}${letters}]`, "gu"));
const SELDOM = /[\u0100-\u024f\u0300-\u036f\u2000-\u2bff]/gu; // no text is made of them
const IDEOGRAPH = /[\u3400-\u9fff]/gu;
const NO_IDEOGRAPH = /[\u3000-\u30ff\uac00-\ud7a3\uff00-\uffef]/gu;
const WIDE_MIN = 8; // letters; fewer show nothing
const ZEROS = /\0/gu;
const NAMED = /(?:encoding|charset|coding)[:= ]{1,10}["']?([a-z0-9_-]+)/giu;
const IMPOSSIBLE = new Set(["utf-16le", "utf-16be", "x-user-defined"]);
const JAPANESE = /\x1b\$[@B]/u; // of ISO-2022-JP, as mail is: two letters of ASCII are one of its own
const ESCAPE = 0x1b;
const SAMPLE = 1_000_000;
const HEAD = 100_000;
/** What a terminal was told: a letter struck over another, a bell, the end of an old file. */
const STRUCK_OVER = /[^\n\b][\b]/gu;
const MARK = /[\0-\x07\x0e-\x1a]/gu;
const MARKS_SHARE = 0.02;

/** Text in whatever encoding; of stray control marks each becomes a blank. Throws Unreadable for bytes that are none. */
export function decode(data: Uint8Array): string {
  const text = marked(data) ?? unmarked(data);
  const plain = text.replace(STRUCK_OVER, "");
  if (isNoText(plain, text.length)) throw new Unreadable("UNSUPPORTED_TYPE");
  return plain.replace(MARK, " ").replaceAll("\b", " ");
}

/** One character a byte, the same number. */
export function latin1(data: Uint8Array): string {
  let text = "";
  for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192));
  return text;
}

function isNoText(text: string, length: number): boolean {
  let marks = 0;
  for (const _ of text.matchAll(MARK)) if (++marks > Math.max(1, length * MARKS_SHARE)) return true;
  return false;
}

function marked(data: Uint8Array): string | null {
  const mark = latin1(data.subarray(0, 4));
  if (mark === "\xff\xfe\0\0" || mark === "\0\0\xfe\xff") throw new Unreadable("NEEDS_SERVER"); // UTF-32
  if (mark.startsWith("\xff\xfe")) return strictly(data, "utf-16le");
  if (mark.startsWith("\xfe\xff")) return strictly(data, "utf-16be");
  return mark.startsWith("\xef\xbb\xbf") ? strictly(data, "utf-8") : null;
}

/** A mark without the encoding that it promises is damage. */
function strictly(data: Uint8Array, encoding: string): string {
  const text = attempt(data, encoding);
  if (text === null) throw new Unreadable("DAMAGED");
  return text;
}

function attempt(data: Uint8Array, encoding: string): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(data);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

function unmarked(data: Uint8Array): string {
  const text =
    (data.includes(ESCAPE) && JAPANESE.test(latin1(data)) ? attempt(data, "iso-2022-jp") : null) ??
    attempt(data, "utf-8");
  if (text !== null) {
    const many = count(ZEROS, text) > Math.max(1, text.length * MARKS_SHARE);
    return (many ? wide(data) : null) ?? text;
  }
  if (data.includes(0)) {
    const found = wide(data);
    if (found === null) throw new Unreadable("UNSUPPORTED_TYPE"); // sound, drawings and programs
    return found;
  }
  const said = named(data);
  if (said && said !== "utf-8") return new TextDecoder(said).decode(data);
  const broken = new TextDecoder().decode(data);
  if (nearly(broken)) return broken;
  const encoding = byLetters(latin1(data.subarray(0, SAMPLE)));
  if (encoding) return inCodePage(data, encoding);
  const raw = latin1(data.subarray(0, HEAD));
  throw new Unreadable(isNoText(raw, raw.length) ? "UNSUPPORTED_TYPE" : "NEEDS_SERVER");
}

/**
 * UTF-16 that does not say so. Its letters are of one part of Unicode; the other way round they are of many, or of none
 * that belong together.
 */
function wide(data: Uint8Array): string | null {
  let [found, fewest] = [null as string | null, Infinity];
  for (const [encoding, half] of [
    ["utf-16be", 0],
    ["utf-16le", 1],
  ] as const) {
    const text = attempt(data, encoding);
    if (text === null || text.length < WIDE_MIN || !isWriting(text.slice(0, HEAD))) continue;
    const parts = new Set(data.subarray(0, 2 * HEAD).filter((_, at) => at % 2 === half)).size;
    if (parts <= fewest) [found, fewest] = [text, parts];
  }
  return found;
}

/**
 * Two letters of ASCII make an ideograph, but hardly one of the signs that stand between real ones; and the halves of
 * these are not of ASCII alone.
 */
function isWriting(text: string): boolean {
  const few = Math.floor(text.length / 50);
  if (count(SELDOM, text) * 2 > text.length) return false;
  if (Math.min(...WIDE.map((strangers) => count(strangers, text))) > few) return false;
  const ideographs = text.match(IDEOGRAPH) ?? [];
  if (ideographs.length <= few) return true;
  const high = ideographs.filter((sign) => sign.charCodeAt(0) & 0x80).length;
  return count(NO_IDEOGRAPH, text) * 50 >= text.length && high * 4 >= ideographs.length;
}

function count(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0;
}

/** The encoding that a page or a source file says it has. One in which it could not say so with these bytes it has not. */
function named(data: Uint8Array): string | null {
  for (const [, name] of latin1(data.subarray(0, 8192)).matchAll(NAMED)) {
    try {
      const { encoding } = new TextDecoder(name!.toLowerCase());
      if (!IMPOSSIBLE.has(encoding)) return encoding;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // only a name that nobody knows is passed over
    }
  }
  return null;
}

/** UTF-8 with a few broken bytes. Other encodings make hardly a sound sequence by chance, and many broken ones. */
function nearly(text: string): boolean {
  const broken = text.match(/\ufffd/gu)?.length ?? 0;
  const sound = (text.match(/[^\0-\x7f]/gu)?.length ?? 0) - broken;
  return broken * 2 <= sound;
}

/** The encoding in which these are the letters of one language that writes Latin ones, or null. */
function byLetters(bytes: string): string | null {
  const high = new Map<string, number>();
  for (const [byte] of bytes.matchAll(/[\x80-\xff]/gu)) high.set(byte, (high.get(byte) ?? 0) + 1);
  const count = [...high.values()].reduce((sum, n) => sum + n, 0);
  const few = Math.floor(count / 50); // a foreign name does not make a text foreign
  const foreign = bytes.match(FOREIGN)?.join("").length ?? 0;
  if (foreign > few) return null;
  let [found, fewest] = [null as string | null, few + 1];
  for (const [encoding, alphabet] of ALPHABETS) {
    const known = new Set(SIGNS + alphabet + alphabet.toUpperCase());
    let strangers = 0;
    for (const [byte, n] of high) {
      const letter = inCodePage(Uint8Array.of(byte.charCodeAt(0)), encoding);
      if (!known.has(letter)) strangers += n;
    }
    if (strangers < fewest) [found, fewest] = [encoding, strangers];
  }
  return found;
}

/** Browsers give control characters for the bytes that a Windows code page leaves open. */
function inCodePage(data: Uint8Array, encoding: string): string {
  return new TextDecoder(encoding).decode(data).replace(/[\x80-\x9f]/gu, "\ufffd");
}
