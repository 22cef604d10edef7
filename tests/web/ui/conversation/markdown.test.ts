/** Convert any answer of a model to HTML, without freezing the page or throwing an error. */

import { cpuSeconds } from "../../../cpu.ts";
import { escapeMarkdown } from "../../../../web/src/core/text/escapeMarkdown.ts";
import { htmlOf, toHtml } from "../../../../web/src/ui/conversation/markdown.ts";

const TEXT = "5 < 6\nand so on";

test.each([
  ["quotations", `${">".repeat(3000)}${TEXT}`],
  ["quotations, apart", `So:\n\n${"> ".repeat(1500)}${TEXT}`],
  ["lists", `${"- ".repeat(3000)}${TEXT}`],
  ["lists of two kinds", `${"- * ".repeat(1500)}\n${TEXT}`],
  ["lists with numbers", `${"1. ".repeat(3000)}${TEXT}`],
  ["stress", `${"*".repeat(10_000)}${TEXT}${"*".repeat(10_000)}`],
])("endless %s become plain text quickly", { timeout: 20_000 }, (_, answer) => {
  const html = toHtml(answer);
  expect(html).toContain("5 &#60; 6<br>and so on");
  expect(html).not.toMatch(/<(?!\/?p>|br>)/u);
});

test("ordinary nesting and horizontal rules are kept", () => {
  expect(toHtml("> > - a\n> >   1. b").match(/<blockquote>|<ul>|<ol>/gu)).toHaveLength(4);
  for (const line of ["-", "*", "_", "- ", "* "])
    for (const times of [18, 80, 3000])
      expect(toHtml(`**a**\n\n${line.repeat(times)}\n\nb`)).toMatch(/<strong>.*<hr>/su);
  const list = "- a\n".repeat(2000);
  expect(toHtml(list).match(/<li>/gu)).toHaveLength(2000);
});

test("HTML, images and unsafe links become text", () => {
  expect(toHtml("a <b onclick='x'>c</b>")).toBe("<p>a &#60;b onclick=&#39;x&#39;&#62;c&#60;/b&#62;</p>\n");
  expect(toHtml("![a <plan>](http://x.org/p.png)")).toBe("<p>a &#60;plan&#62;</p>\n");
  expect(toHtml("[a](javascript:x) [b](https://x.org)")).toBe('<p>a <a href="https://x.org">b</a></p>\n');
});

test.each([
  [
    String.raw`So \(a_1 \cdot b_2 \, < c\) holds.`,
    String.raw`<p>So <code>\(a_1 \cdot b_2 \, &#60; c\)</code> holds.</p>`,
  ],
  [
    String.raw`**Of \(a*b\) and $$x**2$$**`,
    String.raw`<p><strong>Of <code>\(a*b\)</code> and <code>$$x**2$$</code></strong></p>`,
  ],
  [
    String.raw`- \[x_1\]`,
    String.raw`<ul>
<li><pre><code>\[x_1\]</code></pre>
</li>
</ul>`,
  ],
  [
    "Here:\n\\[\na\n= b\n\n- c\n\\]\nDone.",
    "<p>Here:</p>\n<pre><code>\\[\na\n= b\n\n- c\n\\]</code></pre>\n<p>Done.</p>",
  ],
  ["\\[\na \\\\[2pt]\nb\n\\]", "<pre><code>\\[\na \\\\[2pt]\nb\n\\]</code></pre>"],
  ["Open \\(a and \\(b\\)", "<p>Open (a and <code>\\(b\\)</code></p>"],
  ["$$\na \\\\\nb\n$$", "<pre><code>$$\na \\\\\nb\n$$</code></pre>"],
  [String.raw`${"`"}\(a\)${"`"} and \\(b\\)`, String.raw`<p><code>\(a\)</code> and \(b\)</p>`],
  [String.raw`As it says \[1\], 5 $ and \[not closed`, "<p>As it says [1], 5 $ and [not closed</p>"],
  ["Prices: $$ is cheap, $$$ is dear.", "<p>Prices: $$ is cheap, $$$ is dear.</p>"],
  ["The inn is $$ [1], the hotel is $$ [2]", "<p>The inn is $$ [1], the hotel is $$ [2]</p>"],
  ["$$ Cheap\n\nEnd $$", "<p>$$ Cheap</p>\n<p>End $$</p>"],
])("a formula is kept unchanged: %j", (answer, html) => {
  expect(toHtml(answer).trim()).toBe(html);
});

test("brackets in a quotation are not a formula", () => {
  expect(toHtml("> " + escapeMarkdown("as (a) and [b]"), true)).toContain("as (a) and [b]");
});

test("unclosed formulas are parsed quickly", () => {
  for (const mark of ["\\[ a\n\n", "\\( ", "$$ a\n\n\\[ "])
    expect(cpuSeconds(() => toHtml(mark.repeat(5_000)))).toBeLessThan(5);
});

test("a long answer is parsed in linear time", () => {
  for (const mark of ["a\n\n", "*a* b "])
    expect(cpuSeconds(() => toHtml(`${mark.repeat(100_000)}\n\n$$a$$`))).toBeLessThan(10);
});

const BLOCKS = [
  "Some **bold** text with `code` and [a link][ref] to\n[ref]",
  "# A heading",
  "A heading\n=====",
  "- one\n- two\n\n  more\n\n      code",
  "1. one\n\n2. two\n   > quoted\n\n   - [ ] inner",
  "```ts\n# no heading\n\n- no list\n```",
  "~~~\nnever closed in a list",
  "    indented\n\n    code",
  "| a | b |\n|---|---|\n| 1 | **2** |",
  "> quoted\n\n> again\nlazily",
  "[ref]: https://example.org/a 'title'",
  "\\[\na\n\n# b\n\n- c\n\\]",
  "$$\nx\n\ny\n$$",
  "<div>\nHTML\n</div>",
  "<!-- a comment\n\n# in it\n\n-->",
  `${"- one\n\n  more\n\n".repeat(200)}- end`,
  "***",
  "",
  " \n",
];

/** A random number generator (mulberry32) with a seed, so that failures are reproducible. */
function seededRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

test("parsing in windows gives the same HTML as parsing at once", { timeout: 60_000 }, () => {
  for (let seed = 0; seed < 40; seed++) {
    const random = seededRandom(seed);
    const pieces = Array.from({ length: 300 }, () => {
      const block = BLOCKS[random(BLOCKS.length)]!;
      return block + "\n".repeat(random(4) || 2);
    });
    const text = pieces.join("");
    const whole = [...htmlOf(text, false, Infinity)].join("");
    expect([...htmlOf(text, false, 100)].join(""), `seed ${seed}`).toBe(whole);
  }
});

test("a long text is parsed in short steps", () => {
  const text = `# Rents\n\n${"Some **bold** text.\n\n- one\n- two\n\n".repeat(5_000)}`;
  const steps = [...htmlOf(text)];
  expect(steps.length).toBeGreaterThan(text.length / 100);
  expect(Math.max(...steps.map((step) => step.length))).toBeLessThan(1_000);
});
