import { snippet } from "../../../../web/src/core/text/snippet.ts";

const FILL = "Nothing of this belongs to the question at all, it only takes room. ".repeat(12);

test("a short passage is quoted whole", () => {
  expect(snippet("The rent is 940 euros.", "rent")).toBe("The rent is 940 euros.");
});

test("a long passage's best matching sentences are quoted", () => {
  const text = `The rent is mentioned here. ${FILL}The rent of the flat is 940 euros a month. ${FILL}`;
  const found = snippet(text, "What is the monthly rent of the flat in euros?", 120);
  expect(found).toMatch(/^… The rent of the flat is 940 euros a month\./u);
  expect(found).toMatch(/ …$/u);
  expect(found.length).toBeLessThanOrEqual(130);
});

test("a long passage without a match is quoted from its beginning", () => {
  expect(snippet(`It begins. ${FILL}`, "zebra", 80)).toMatch(/^It begins\./u);
});

test("a long text without sentences or spaces is cut, too", () => {
  for (const text of ["x".repeat(5000), "語".repeat(5000), "\n".repeat(5000)]) {
    expect(snippet(text, "x 語", 100).length).toBeLessThanOrEqual(110);
  }
});
