/** Run the shared conformance cases in Chromium, whose Unicode version is newer than the server's. */

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import type * as Cases from "../web/cases.ts";
import { Browser } from "./browser.ts";
import { bundle } from "./bundle.ts";

declare const cases: typeof Cases;

let browser: Browser;
let page: Page;

beforeAll(async () => {
  browser = await Browser.start();
  page = await browser.page("about:blank");
  await page.addScriptTag({ content: await bundle("tests/web/cases.ts", "cases") });
});
afterAll(() => browser?.stop());

test.each([
  ["normalization", "runNormalization"],
  ["chunking", "runChunking"],
  ["ranking", "runRanking"],
  ["vectors", "runVectors"],
] as const)("Chromium gives the server's results for %s", async (name, run) => {
  // Pass the file as text, in which lone surrogates stay escaped.
  const file = readFileSync(`tests/conformance/${name}.json`, "utf8");
  const [count, differences] = await page.evaluate(
    ([file, run]) => {
      const given = JSON.parse(file);
      return [given.length as number, cases[run](given)] as const;
    },
    [file, run] as const,
  );
  expect(count).toBeGreaterThan(10);
  expect(differences).toEqual([]);
});
