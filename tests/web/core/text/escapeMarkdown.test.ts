/** Escape text for Markdown: the Markdown parser then shows it unchanged, without any formatting. */

import { Marked } from "marked";
import { escapeMarkdown } from "../../../../web/src/core/text/escapeMarkdown.ts";

const marked = new Marked({ gfm: true, breaks: true, async: false });

test.each([
  ...["**[1]**", "# [1]", "[1]", "* one", "- one", "+ one", "1. one", "2) two", "a\n===", "a\n---", "---"],
  ...["`code`", "_em_", "~~no~~", "[a](https://a.test)", "![a](b)", "    code", "> quote", "```\ncode\n```"],
  ...["| a | b |\n|---|---|\n| 1 | 2 |", "a \\* b", "price - 3 + 4 = 7", "www.a_b.test", "&copy;"],
])("%j is displayed unchanged", (text) => {
  const html = marked.parse(escapeMarkdown(text)) as string;
  expect(html.replace(/<br>/gu, "")).toMatch(/^<p>[^<]*<\/p>\n$/u);
  expect(escapeMarkdown(text)).not.toMatch(/(?<!\\)[[\]]/u);
});
