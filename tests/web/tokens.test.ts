/** What goes into the tokenizer is spelled as the server spells it: the shared cases of normalise.json. */

import { readFileSync } from "node:fs";
import { forTokenizer } from "../../web/src/engines/embedder/tokens.ts";
import { spelled, type Text } from "../conformance/cases.ts";

const cases = JSON.parse(readFileSync("tests/conformance/normalise.json", "utf8")) as {
  name: string;
  normalised: Text;
  forTokenizer: Text;
}[];

test.each(cases)("$name", (given) => {
  expect(forTokenizer(spelled(given.normalised))).toBe(spelled(given.forTokenizer));
});
