/** Each regular expression of the app takes time in proportion to the text, whatever stands in it. */

import { expect, test } from "vitest";
import { consume, hostile, patterns, type Found } from "./patterns.ts";

/** Short texts find those that are slowest for an expression; these are then made long. */
const FIRST = [24, 400]; // stop an exponential or a cubic one before it takes hours
const SHORT = 2_000;
const [LENGTH, SECONDS] = [32_000, 0.15];

const took = (found: Found, text: string): number => {
  const before = process.cpuUsage();
  consume(found, text);
  return process.cpuUsage(before).user / 1e6;
};

const isSlow = (found: Found, text: string): boolean => [1, 2, 3].every(() => took(found, text) > SECONDS); // another program may have had the core

function slowText(found: Found): string | undefined {
  for (const length of FIRST) for (const text of hostile(found, length)) if (isSlow(found, text)) return text;
  const timed = [...hostile(found, SHORT)].map((text, at) => ({ at, took: took(found, text) }));
  const slowest = new Set(
    timed
      .toSorted((a, b) => b.took - a.took)
      .slice(0, 5)
      .map(({ at }) => at),
  );
  let at = 0;
  for (const text of hostile(found, LENGTH)) if (slowest.has(at++) && isSlow(found, text)) return text;
  return undefined;
}

// These measure time, so only `make soak` runs them.
const SOAK = process.env["SOAK"] !== undefined;

test.runIf(SOAK)("no regular expression is quadratic", { timeout: 600_000 }, async () => {
  const slow = [];
  const all = await patterns();
  expect(all.length).toBeGreaterThan(150);
  for (const found of all) {
    const text = slowText(found);
    if (text)
      slow.push(
        `${found.where} ${String(found.expression).slice(0, 90)}: ${JSON.stringify(text.slice(0, 20))}`,
      );
  }
  expect(slow).toEqual([]);
});

test.runIf(SOAK).each([/(?:a+)+b/u, /x*y/u, /<a[^>]*>/u])("%s is noticed", (expression) => {
  expect(slowText({ where: "here", expression })).toBeDefined();
});
