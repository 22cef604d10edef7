/** Quote documents without Markdown syntax, and keep code unchanged. */

import { cpuSeconds } from "../../../cpu.ts";
import type { PassageSearchResult } from "../../../../web/src/core/documents/passageIndex.ts";
import { quotationAnswer } from "../../../../web/src/core/chat/quotationAnswer.ts";
import { stripMarkdown, stripMarkdownOf } from "../../../../web/src/core/text/stripMarkdown.ts";
import { memorySection } from "../../../../web/src/core/chat/memorySection.ts";

test.each([
  ["a heading", "# About the tides\n\nThe sea rises.", "About the tides\n\nThe sea rises."],
  ["a heading with closing marks", "## What raises them ##", "What raises them"],
  ["an underlined heading", "Tides\n=====\n\nNeap\n---\nLow.", "Tides\n\nNeap\nLow."],
  [
    "bold, italic, both and struck through",
    "**Due** *now*, ***really***, ~~later~~",
    "Due now, really, later",
  ],
  ["bold over two lines", "It is **due\non Monday**.", "It is due\non Monday."],
  ["italic in bold", "**Due *now* or never**", "Due now or never"],
  ["bold and italic with underscores", "__All of it__ and _this_", "All of it and this"],
  ["a list", "* one\n- two\n+ three\n  * four\n1. five", "• one\n• two\n• three\n  • four\n1. five"],
  ["a quotation", "> # Said\n> > so", "Said\nso"],
  ["a table", "| a | b |\n|---|:-:|\n| 1 |  |\n| x \\| y | 2 |", "a · b\n1\nx | y · 2"],
  ["links and pictures", '[the lease](a_b.md "A") ![a plan](p.png) [![ok](b.svg)](c)', "the lease a plan ok"],
  ["a reference link", "Read [the lease][1] or [the plan][]", "Read the lease or the plan"],
  ["a link with brackets in it", "[tide](https://en.wikipedia.org/wiki/Tide_(sea))", "tide"],
  ["an automatic link", "<https://example.org/a_b_c>", "https://example.org/a_b_c"],
  ["HTML tags", 'One<br>two <img src="a" /> <!-- not\nsaid -->three', "One two  three"],
  [
    "a long comment",
    `One<!-- ${"- <!-- said ".repeat(500)}-->two <!-- never closed`,
    "Onetwo <!-- never closed",
  ],
  ["escaped marks", "\\# 5 \\*is\\* 2 \\\\ 1", "# 5 *is* 2 \\ 1"],
  ["a horizontal rule", "One\n\n---\n\n* * *\nTwo", "One\n\n\nTwo"],
])("stripMarkdown strips %s", (_, markdown, said) => expect(stripMarkdown(markdown)).toBe(said));

test.each([
  ["arithmetic operators", "2 * 3 * 4 and 5*6*7, a ** b ** c"],
  ["underscores and # in names", "snake_case_name, __init__ and C#, #1"],
  ["numbers in brackets", "See [1] and [2], or [1][2]."],
  ["index expressions", "a[i][j] and rows[0][name]"],
  ["comparison operators", "1 < 2 and 3 > 2, a<T>c</T>"],
  ["paths", "C:\\Users\\ada"],
  ["an empty list item and a dash", "- \nhe said - no"],
])("stripMarkdown does not change %s", (_, text) => expect(stripMarkdown(text)).toBe(text));

test("stripMarkdown removes code delimiters but keeps the code", () => {
  expect(stripMarkdown("Call `a * b * c` or **``x ` y``**.")).toBe("Call a * b * c or x ` y.");
  expect(stripMarkdown("```sh\n# **not** a heading\n```\n# One")).toBe("# **not** a heading\nOne");
  expect(stripMarkdown("~~~\n| a |\n```\n~~~\n*x*")).toBe("| a |\n```\nx");
  expect(stripMarkdown("So:\n\n    # *code*\n    > more\n\nand *not*")).toBe(
    "So:\n\n    # *code*\n    > more\n\nand not",
  );
});

test("code may span passages, and only Markdown files are stripped", () => {
  expect(stripMarkdownOf("a.md", "# A\n```\n# x\n", "# y\n```\n", "# B")).toEqual(["A\n# x\n", "# y\n", "B"]);
  expect(stripMarkdownOf("a.py", "# A", "**kwargs")).toEqual(["# A", "**kwargs"]);
});

test("hostile text is stripped quickly", () => {
  for (const part of [
    "**a ",
    "*a ",
    "_a ",
    "[a](",
    "`",
    "![",
    "<!--",
    "| ",
    "__a b ",
    "~~a ",
    "\\",
    "> ",
    "#",
  ]) {
    expect(
      cpuSeconds(() => stripMarkdown(part.repeat(4_000))),
      part,
    ).toBeLessThan(2);
  }
});

const place = { documentId: "d", block: 0, chunkIndex: 0, page: null, section: null };
const found = (filename: string, text: string): PassageSearchResult => ({
  results: [{ ...place, filename, text, score: 1, also: [] }],
  ...{ searched: [filename], byMeaning: true },
});

test("a quotation answer strips only Markdown files", () => {
  const { aiResponse } = quotationAnswer(
    "tides",
    found("tides.md", "# About the tides\n\nThe **sea** rises."),
  );
  expect(aiResponse).toBe("> About the tides\n> \n> The sea rises.\n>\n> [1]");
  expect(quotationAnswer("all", found("all.py", "# all\n")).aiResponse).toContain("> \\# all");
});

test("Markdown is stripped from recalled answers but not from memories", () => {
  const said = { date: "2026-05-02", session: "session “Rent”", text: "The rent?\n\n**940** euros" };
  expect(memorySection("rent", [{ ...said, id: "e", turn: "e" }])).toContain("> The rent? 940 euros\n");
  // A memory is plain text, so its asterisks are escaped.
  expect(memorySection("rent", [{ ...said, id: "m" }])).toContain("> The rent? \\*\\*940");
});
