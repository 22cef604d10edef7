/** No sentence of the app speaks as a program does. */

import { readdirSync, readFileSync } from "node:fs";

const WORDS = "web/src/ui/words";
const PLACES = readdirSync(WORDS).filter((name) => name !== "sample.ts"); // that is a text about the sea
const FILES = [...PLACES.map((name) => `${WORDS}/${name}`), "web/src/core/chat/storedSentences.ts"];
const REMARK = /\/\*[^]*?\*\/|^\s*\/\/.*$|^import .*$/gmu;
/** Names of the program, and not words of a sentence. */
const NAME = /(?:case |[!=]== |\btype \w+ = |\.includes\()"[^"]*"(?: \| "[^"]*")*/gu;
const QUOTED = /"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/gu;
const JARGON =
  /\b(?:embed\w*|rows?|tokens?|external ?ids?|blocks?|chunks?|queues?|vectors?|index\w*|pool|prompts?|turns?|episodes?|cache\w*|external\w*|sync errors?)\b/iu;

/** What is between quotation marks and has a blank or a capital in it: the rest are names of the program. */
function sentences(file: string): string[] {
  const source = readFileSync(file, "utf8").replace(REMARK, "").replace(NAME, "");
  const within = [...source.matchAll(/\bcount\([^"()]*"([^"]+)", "([^"]+)"\)/gu)].flatMap(
    ([, ...words]) => words,
  );
  const said = [...source.matchAll(QUOTED)].map(([, plain, template]) => plain ?? template!);
  return [...within, ...said.map((text) => text.replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/gu, "…"))];
}

test.each(FILES)("%s says it in words that people know", (file) => {
  expect(sentences(file).filter((text) => JARGON.test(text))).toEqual([]);
});

test("what is looked for is found", () => {
  expect(sentences(`${WORDS}/sync.ts`)).toContain("Waiting to be sent");
  expect(sentences(`${WORDS}/memory.ts`)).toContain("entries");
  expect(JARGON.test("Erased 4 rows")).toBe(true);
});
