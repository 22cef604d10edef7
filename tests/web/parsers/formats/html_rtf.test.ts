/** Malformed HTML is parsed as browsers display it, and malformed HTML and RTF are parsed quickly. */

import { cpuSeconds } from "../../../cpu.ts";
import { parse as rtf } from "../../../../web/src/parsers/formats/rtf.ts";
import { htmlParts } from "../../../../web/src/parsers/formats/html.ts";

const textsOf = (page: string) => htmlParts(page).map(({ text }) => text);

test.each([
  ["doubled", '<p class="x"">The rent is due.</p> In May. <p class="y"">It ends.</p>'],
  ["in the middle", '<p class="x" "y">The rent is due.</p> In May. <p class="x" "y">It ends.</p>'],
  ["unpaired", '<p class="x" ">The rent is due.</p> In May. <p>It ends.</p>'],
  ["as an apostrophe", "<p class=tenant's>The rent is due.</p> In May. <p class=tenant's>It ends.</p>"],
  ["in an unquoted value", '<p class=a="b">The rent is due.</p> In May. <p class=a=">It ends.</p>'],
  ["around a value with >", `<p class = "a>b" id='>'>The rent is due.</p> In May. <p title=">">It ends.</p>`],
  ["in a closing tag", `<p class="x">The rent is due.</p "> In May. <p>It ends.</p ">`],
])("an extra quotation mark loses no text: %s", (_, page) => {
  expect(textsOf(page)).toEqual(["The rent is due.\n\nIn May.\n\nIt ends."]);
});

test("a very long attribute value is skipped", () => {
  const picture = "A".repeat(12_000_000);
  for (const mark of ["", '"', "'"])
    expect(textsOf(`<p>one<img src=${mark}${picture}${mark}>two`)).toEqual(["onetwo"]);
});

test.each([
  ["a long name", `<${"a".repeat(300_000)} ">`],
  ["quotation marks outside values", '<a ">"'.repeat(50_000)],
  ["a tag that does not end", '<a b=">"'.repeat(50_000)],
  ["values that do not end", `${"<a b='\">".repeat(50_000)}'`],
  ["document types that do not end", "<!doctype[>".repeat(100_000)],
  ["nested elements in an unclosed paragraph", `<p><button>${"<div>".repeat(100_000)}`],
])("hostile HTML is parsed quickly: %s", (_, page) => {
  expect(cpuSeconds(() => htmlParts(page))).toBeLessThan(5);
});

test("RTF with many undeclared fonts is parsed quickly", () => {
  const bytes = new TextEncoder().encode(`{\\rtf1 ${"\\f1".repeat(200_000)} The rent.}`);
  expect(cpuSeconds(() => expect(rtf(bytes).parts).toEqual([{ text: "The rent." }]))).toBeLessThan(5);
});

test("RTF binary data with a negative length is ignored", () => {
  const { parts } = rtf(new TextEncoder().encode("{\\rtf1 The \\bin-100 rent.}"));
  expect(parts).toEqual([{ text: "The rent." }]);
});

test("an HTML document type and its declarations are skipped", () => {
  const page = `<!-- <! --><!doctype html [ <!ELEMENT p (#PCDATA)> <!-- > --> ]>\n<p>The rent.</p>`;
  expect(textsOf(page)).toEqual(["The rent."]);
});
