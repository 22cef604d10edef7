/**
 * Sanitize text from outside, so that it cannot imitate the structure of a prompt. This module mirrors
 * server/vademecum/model/text/sanitize.py, which explains the rules; both are tested with
 * tests/conformance/sanitize.json.
 */

import { fold } from "./tokenize.ts";

const LINE_END = /\r\n|[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]/gu;
const HIDDEN =
  /[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;
const BLANK = " \\t\\xa0\\u1680\\u2000-\\u200f\\u202f\\u205f\\u3000";
const OPEN = "\\[\\{<［｛＜";
const CLOSE = "\\]\\}>］｝＞";
const BRACKETED = new RegExp(`(?<![${OPEN}])[${OPEN}]+([^${OPEN}${CLOSE}]*)[${CLOSE}]+`, "gu");
const UNCLOSED = new RegExp(
  `^([${BLANK}]*)[${OPEN}]+(?![${OPEN}])(?=[^${OPEN}${CLOSE}\\n]*(?:[${OPEN}]|$))([^\\n]*)`,
  "gmu",
);
const HEADER_WORDS = ["context", "system", "assistant", "instruction", "prompt", "imstart", "imend"];
const HEADER = /^(?:inst|sys|user|human|toolcalls?|toolresponse|toolresults|availabletools)$/;
const MAX_HEADER_LETTERS = 60;
const ANGLE_TOKEN = new RegExp(
  "^(?:/?(?:s|bos|eos|sop|eop|AI|用户|role|think|start_of_turn|end_of_turn|(?:seed|minimax):[a-z_]+|sep|eoh|eoa|_bot|_end" +
    "|(?:SPECIAL_|extra_id_|reserved_|unused)[0-9]+|(?:BOS|EOS|EOP)_TOKEN)" +
    "|[|｜][a-z_]+|[a-z_]+[|｜])$",
  "u",
);
const SQUARE_TOKEN =
  /^(?:[|](?:tool|endofturn)[|]|[gs]MASK|unused[0-9]+|\/?THINK|ARGS|CALL_ID|TOOL_CONTENT)$/u;
const TILDE_TOKEN = /(?!\[[^[\]]{2,3}\])[[\]](~!?[a-z]|!?[a-z]~)[[\]]/gu;
const LABELED = /^([^\n:：]*)[:：]/gmu;
const LABEL = /^(?:source|user|human|assistant|system|theusersaid|theanswerwas)$/;
const HEADING = /^(?:instruction|response)$/;
const RULE = new RegExp(
  `^[${BLANK}]*(?:[\\-\\u2010-\\u2015\\u2212\\u2500\\u2501\\u2550\\uff0d][${BLANK}]*){3,}$`,
  "gmu",
);
const DOTS = "· · ·";
const NUMBER = /[[［【〔]([\^†]?[0-9]{1,4}(?:[ ,;†–-]{1,3}[0-9]{1,4}){0,20})[\]］】〕]/gu;
const QUOTE = /["＂“”„‟″〃]/gu;

/** Rewrite everything that could pass for a delimiter of the prompt or for a control token. */
export function sanitize(text: string): string {
  return text
    .replace(LINE_END, "\n")
    .replace(HIDDEN, "")
    .replace(BRACKETED, (bracketed: string, inside: string) =>
      isControlToken(bracketed, inside) || isHeader(inside) ? `(${inside})` : bracketed,
    )
    .replace(TILDE_TOKEN, "($1)")
    .replace(UNCLOSED, (line, before: string, inside: string) =>
      isHeader(inside) ? `${before}(${inside}` : line,
    )
    .replace(LABELED, (labeled, label: string) => (isLabel(label) ? `${label} -` : labeled))
    .replace(RULE, DOTS);
}

/** Sanitize a name or an item of a list, and put it on one line. */
export function sanitizeLine(text: string): string {
  const line = sanitize(text).replace(/[\n\t]+/gu, " ");
  // Trim with loops: a regular expression for both ends takes quadratic time in a run of spaces.
  let [start, end] = [0, line.length];
  while (line[start] === " ") start += 1;
  while (end > start && line[end - 1] === " ") end -= 1;
  return line.slice(start, end);
}

/** Replace the brackets of numbers such as `[3]`, which could pass for citations, with parentheses. */
export function neutralizeNumbers(text: string): string {
  return text.replace(NUMBER, "($1)");
}

/**
 * Sanitize a text and put it in double quotes. Double quotes in the text become single ones, so that none ends the
 * quotation.
 */
export function quote(text: string): string {
  return `"${sanitize(text).replace(QUOTE, "'")}"`;
}

function isControlToken(bracketed: string, inside: string): boolean {
  if (bracketed.includes("[") && SQUARE_TOKEN.test(inside)) return true;
  if (!bracketed.includes("<")) return false;
  const { length } = [...inside];
  return (
    (length > 2 && length <= MAX_HEADER_LETTERS && /^[|｜].*[|｜]$/su.test(inside)) ||
    ANGLE_TOKEN.test(inside)
  );
}

function isHeader(inside: string): boolean {
  const read = letters(inside);
  return (
    HEADER.test(read) ||
    (read.length <= MAX_HEADER_LETTERS && HEADER_WORDS.some((word) => read.includes(word)))
  );
}

function isLabel(label: string): boolean {
  const read = letters(label);
  return LABEL.test(read) || (label.trimStart().startsWith("#") && HEADING.test(read));
}

function letters(text: string): string {
  return fold(text).replace(/[^a-z]+/g, "");
}
