/** The app recommends the multilingual model if it knows the language of few documents. Uses the real database. */

import { isMostlyForeign } from "../../../../web/src/backend/library/libraryLanguage.ts";
import { estimateTokens } from "../../../../web/src/core/documents/tokenEstimate.ts";
import type { DeviceAccount } from "../../../../web/src/storage/deviceDatabase.ts";
import { contextOf, insert, openRows } from "../../device.ts";

const ENGLISH = { text: "The rent is due on the first day of each month.", tokens: 12 };
const GERMAN = { text: "Die Kaltmiete ist monatlich im Voraus zu entrichten.", tokens: 22 };
const ARABIC = { text: "يدفع الإيجار في أول الشهر", tokens: 20 };
const estimated = ({ text }: { text: string }) => ({ text, tokens: estimateTokens(text) });

/** Return whether the model is recommended for documents of one passage each. */
async function isRecommended(passages: { text: string; tokens: number }[], languages = ["en"]) {
  const records = await openRows();
  for (const [n, passage] of passages.entries()) {
    await insert(records, "documents", { id: `d${n}` });
    const block = { id: `d${n}.0`, documentId: `d${n}`, block: 0 };
    await insert(records, "vectorEmbeddings", { ...block, chunks: [{ index: 0, start: 0, ...passage }] });
  }
  const context = contextOf(records);
  Object.assign(context.account, { model: { thresholds: { languages } } as DeviceAccount["model"] });
  return isMostlyForeign(context);
}

test.each([
  ["most documents are in other languages", [GERMAN, ARABIC, ENGLISH], true],
  ["half of the documents are English", [GERMAN, ENGLISH], false],
  ["there are no documents", [], false],
  ["a German passage has an estimated number of tokens", [estimated(GERMAN)], false],
  ["an Arabic passage has an estimated number of tokens", [estimated(ARABIC)], true],
])("the multilingual model is recommended for foreign documents: %s", async (_, passages, expected) => {
  expect(await isRecommended(passages)).toBe(expected);
});

test("no model is recommended if the current one knows the languages", async () => {
  expect(await isRecommended([GERMAN, ARABIC], ["en", "zh"])).toBe(false);
});
