/** What a model answers becomes HTML, whatever it is: an answer that cannot be drawn would take the page with it. */

import { toHtml } from "../../web/src/ui/conversation/markdown.ts";

const SAID = "5 < 6\nand so on";

test.each([
  ["quotations", `${">".repeat(3000)}${SAID}`],
  ["quotations, apart", `So:\n\n${"> ".repeat(1500)}${SAID}`],
  ["lists", `${"- ".repeat(3000)}${SAID}`],
  ["lists of two kinds", `${"- * ".repeat(1500)}\n${SAID}`],
  ["lists with numbers", `${"1. ".repeat(3000)}${SAID}`],
  ["stress", `${"*".repeat(10_000)}${SAID}${"*".repeat(10_000)}`],
])("%s without end are shown as they are written, and soon", { timeout: 20_000 }, (_, answer) => {
  const html = toHtml(answer);
  expect(html).toContain("5 &#60; 6<br>and so on");
  expect(html).not.toMatch(/<(?!\/?p>|br>)/u);
});

test("what people nest is nested, and a line across is one", () => {
  expect(toHtml("> > - a\n> >   1. b").match(/<blockquote>|<ul>|<ol>/gu)).toHaveLength(4);
  for (const line of ["-", "*", "_", "- ", "* "])
    for (const times of [18, 80, 3000])
      expect(toHtml(`**a**\n\n${line.repeat(times)}\n\nb`)).toMatch(/<strong>.*<hr>/su);
  const list = "- a\n".repeat(2000);
  expect(toHtml(list).match(/<li>/gu)).toHaveLength(2000);
});

test("HTML is text, pictures are named, and links go nowhere else", () => {
  expect(toHtml("a <b onclick='x'>c</b>")).toBe("<p>a &#60;b onclick=&#39;x&#39;&#62;c&#60;/b&#62;</p>\n");
  expect(toHtml("![a <plan>](http://x.org/p.png)")).toBe("<p>a &#60;plan&#62;</p>\n");
  expect(toHtml("[a](javascript:x) [b](https://x.org)")).toBe('<p>a <a href="https://x.org">b</a></p>\n');
});
