/** Escape text, so that Markdown shows it literally. */

/**
 * Markdown characters with a meaning anywhere in a line, and the characters that turn an address into a link.
 */
const MARKS = /[\\`*_~[\]<>#|!&@]|:(?=\/\/)|(?<=www)\./giu;
/**
 * Indentation, which would start a code block. The next two patterns match markers of lists, rules and heading
 * underlines.
 */
const INDENT = /^[ \t]+/gmu;
const AT_LINE = /^([-+=])/gmu;
const NUMBERED = /^(\d{1,9})([.)])/gmu;

/**
 * Return the text with escapes, so that nothing in it is a heading, list, code, link or citation such as
 * `[1]`.
 */
export function escapeMarkdown(text: string): string {
  return text.replace(INDENT, "").replace(MARKS, "\\$&").replace(AT_LINE, "\\$1").replace(NUMBERED, "$1\\$2");
}
