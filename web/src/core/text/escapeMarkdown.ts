/** Text of others as Markdown that shows it as it is. */

/** What Markdown reads as a mark, wherever it stands, and what makes an address a link, in which marks stay escaped. */
const MARKS = /[\\`*_~[\]<>#|!&@]|:(?=\/\/)|(?<=www)\./giu;
/** What it reads as one at the beginning of a line: a list, a rule, a heading's underline; and what would indent code. */
const INDENT = /^[ \t]+/gmu;
const AT_LINE = /^([-+=])/gmu;
const NUMBERED = /^(\d{1,9})([.)])/gmu;

/** Nothing of it is a heading, a list, code, a link or, as `[1]` would be, a citation. */
export function escapeMarkdown(text: string): string {
  return text.replace(INDENT, "").replace(MARKS, "\\$&").replace(AT_LINE, "\\$1").replace(NUMBERED, "$1\\$2");
}
