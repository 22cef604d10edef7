/** Hostile texts take at most a second of CPU time. */

import { expect, test } from "vitest";
import { sanitizeLine } from "../../web/src/core/text/sanitize.ts";
import { stripMarkdown } from "../../web/src/core/text/stripMarkdown.ts";
import { toHtml } from "../../web/src/ui/conversation/markdown.ts";

const PIECES = [
  ...[
    "``",
    "`a",
    "<!--",
    "[",
    "[a](",
    "![",
    "**a",
    "*a",
    "_a",
    "__a ",
    "~~a ",
    "* ",
    ">",
    "> a\n",
    "|a",
    "|",
  ],
  ...[
    "http://a",
    "a@",
    "a.",
    "a.a@a",
    "<",
    "<a ",
    "\\[",
    "&#",
    "#",
    " ",
    "\n",
    "\t",
    "[a]: ",
    "[a]: b\n",
    "`",
  ],
  ...["```\n", "- ", "a\n=", "|a|b|\n", "a b ", "1. ", "$$", "\\(", "[1]", "{", "<br ", "[a][", "***a", "\0"],
];
const ENDS: [string, string][] = [
  ["", ""],
  ["a", "@"],
  ["# a", "#\t#"],
  ["x", "x"],
  ["|a|b|\n|-|-|\n", ""],
];
const LENGTH = process.env["SOAK"] ? 1_000_000 : 40_000;

function* hostile(): Generator<string> {
  for (const piece of PIECES)
    for (const [before, after] of ENDS) yield before + piece.repeat(Math.ceil(LENGTH / piece.length)) + after;
}

const READERS: [string, (text: string) => string][] = [
  ["sanitizeLine", sanitizeLine],
  ["stripMarkdown", stripMarkdown],
  ["toHtml", (text) => toHtml(text.slice(0, 200_000))], // the maximum length of an answer
];

test.each(READERS)("%s takes at most a second on any hostile text", { timeout: 600_000 }, (_, reader) => {
  const slow = [];
  for (const text of hostile()) {
    const before = process.cpuUsage();
    reader(text);
    const { user, system } = process.cpuUsage(before);
    if (user + system > 1_000_000) slow.push([text.slice(0, 20), text.slice(-5), (user + system) / 1e6]);
  }
  expect(slow.map((one) => one.join(" · "))).toEqual([]);
});

test("a long ordinary answer is rendered as Markdown", () => {
  const row = "| **Rent** | `1,200` | [lease](https://example.org) | _May_ |\n";
  const table = `| a | b | c | d |\n|---|---|---|---|\n${row.repeat(150)}`;
  const code = `\`\`\`ts\n${'const a = b["c"] && `d`;\n'.repeat(2000)}\`\`\``;
  const html = toHtml(`# Rents\n\n${table}\n\n${code}\n\n${"Some **bold** text.\n\n".repeat(1000)}`);
  for (const tag of ["<h1>", "<td>", "<strong>"]) expect(html).toContain(tag);
});
