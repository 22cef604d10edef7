/** Pages that people wrote by hand: what a browser shows of them is read, and however odd they are it does not take long. */

import { cpuSeconds } from "../../../cpu.ts";
import { parse as rtf } from "../../../../web/src/parsers/formats/rtf.ts";
import { htmlParts } from "../../../../web/src/parsers/formats/html.ts";

const said = (page: string) => htmlParts(page).map(({ text }) => text);

test.each([
  ["doubled", '<p class="x"">The rent is due.</p> In May. <p class="y"">It ends.</p>'],
  ["in the middle", '<p class="x" "y">The rent is due.</p> In May. <p class="x" "y">It ends.</p>'],
  ["without another", '<p class="x" ">The rent is due.</p> In May. <p>It ends.</p>'],
  ["an apostrophe", "<p class=tenant's>The rent is due.</p> In May. <p class=tenant's>It ends.</p>"],
  ["of a value without them", '<p class=a="b">The rent is due.</p> In May. <p class=a=">It ends.</p>'],
  ["whole", `<p class = "a>b" id='>'>The rent is due.</p> In May. <p title=">">It ends.</p>`],
  ["in a tag that ends", `<p class="x">The rent is due.</p "> In May. <p>It ends.</p ">`],
])("a quotation mark too many in a tag takes no words: %s", (_, page) => {
  expect(said(page)).toEqual(["The rent is due.\n\nIn May.\n\nIt ends."]);
});

test("a value is as long as it is: pictures stand in pages", () => {
  const picture = "A".repeat(12_000_000);
  for (const mark of ["", '"', "'"])
    expect(said(`<p>one<img src=${mark}${picture}${mark}>two`)).toEqual(["onetwo"]);
});

test.each([
  ["a long name", `<${"a".repeat(300_000)} ">`],
  ["marks outside of values", '<a ">"'.repeat(50_000)],
  ["values and no end", '<a b=">"'.repeat(50_000)],
  ["values that do not end", `${"<a b='\">".repeat(50_000)}'`],
  ["document types that do not end", "<!doctype[>".repeat(100_000)],
  ["what lies between a paragraph and its end", `<p><button>${"<div>".repeat(100_000)}`],
])("it does not take long: %s", (_, page) => {
  expect(cpuSeconds(() => htmlParts(page))).toBeLessThan(5);
});

test("a font whose alphabet is not said is not looked for in all that follows", () => {
  const bytes = new TextEncoder().encode(`{\\rtf1 ${"\\f1".repeat(200_000)} The rent.}`);
  expect(cpuSeconds(() => expect(rtf(bytes).parts).toEqual([{ text: "The rent." }]))).toBeLessThan(5);
});

test("a picture that claims to end before it begins is none", () => {
  const { parts } = rtf(new TextEncoder().encode("{\\rtf1 The \\bin-100 rent.}"));
  expect(parts).toEqual([{ text: "The rent." }]);
});

test("a document type is passed over, with all that it declares", () => {
  const page = `<!-- <! --><!doctype html [ <!ELEMENT p (#PCDATA)> <!-- > --> ]>\n<p>The rent.</p>`;
  expect(said(page)).toEqual(["The rent."]);
});
