/** The numbers that an answer cites, and the passages that it names as its sources. */

import { citedNumbers } from "../../../../web/src/core/chat/citedNumbers.ts";
import { splitCitations } from "../../../../web/src/core/chat/answers.ts";
import { NOT_FOUND } from "../../../../web/src/core/chat/notFoundAnswer.ts";

test.each([
  ["The rent is 900 [1].", [1]],
  ["The rent is 900 [2][1], the deposit 1,800 [1, 3].", [2, 1, 3]],
  ["Footnotes[^4] and other brackets 【5】.", [4, 5]],
  ["No numbers.", []],
  ["[a1], [1a], [], [2026-01-01] and (3) are none.", []],
  ["In code, `list[1]` is none.\n\n```\nother[2]\n```\nBut this is [3].", [3]],
  ["```\nunclosed[1]\n", []],
  ["[0] and [12345]", [0]],
])("%s", (answer, numbers) => {
  expect(citedNumbers(answer)).toEqual(numbers);
});

const citation = (n: number) => ({ n, documentId: `d${n}`, filename: `${n}.txt` });
const CITATIONS = [1, 2, 3].map(citation);

test.each([
  ["passages are listed in the order in which they are cited", "B [3], A [1].", [3, 1], [2]],
  ["a number that no passage has is ignored", "B [7].", [], [1, 2, 3]],
  ["a 'not found' answer cites nothing", `${NOT_FOUND} [1]`, [], [1, 2, 3]],
])("%s", (_, aiResponse, cited, others) => {
  const split = splitCitations({ aiResponse, citations: CITATIONS });
  expect(split.cited.map(({ n }) => n)).toEqual(cited);
  expect(split.others.map(({ n }) => n)).toEqual(others);
});

test("a quotation answer cites all its passages", () => {
  const split = splitCitations({ model: "quotes", aiResponse: "> text", citations: CITATIONS });
  expect(split).toEqual({ cited: CITATIONS, others: [] });
});
