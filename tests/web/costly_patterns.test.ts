/** Each regular expression of the app runs in linear time on any text. */

import { expect, test } from "vitest";
import { consume, hostile, patterns, type Found } from "./patterns.ts";

/** Lengths at which exponential and cubic expressions are detected before they take hours, and the limit in seconds. */
const [EARLY_LENGTHS, EARLY_SECONDS] = [[24, 400], 0.02];
/** The length at which all texts are timed. Only the slowest of each expression are timed at full length. */
const SHORT = 2_000;
const [LENGTH, SECONDS] = [32_000, 0.15];
const [MEGABYTE, MEGABYTE_SECONDS] = [1_000_000, 1];
/** An expression that is faster than this at this length is fast at any stored length. */
const [PROBE_LENGTH, PROBE_SECONDS] = [1_000, 0.0001];
/** Texts of two lengths: for the longer one, a linear expression takes 4 times as long, a quadratic one 16 times. */
const [STEP, FACTOR, GROWTH] = [4_000, 4, 9];

const took = (found: Found, text: string): number => {
  const before = process.cpuUsage();
  consume(found, text);
  return process.cpuUsage(before).user / 1e6;
};

/** Return the shortest time of three runs, because another program may delay one, or the first within the limit. */
function shortestTime(found: Found, text: string, limit: number): number {
  let shortest = Infinity;
  for (let run = 0; run < 3 && shortest > limit; run++) shortest = Math.min(shortest, took(found, text));
  return shortest;
}

const isSlow = (found: Found, text: string, seconds: number): boolean =>
  shortestTime(found, text, seconds) > seconds;

function explosiveText(found: Found): string | undefined {
  for (const length of EARLY_LENGTHS)
    for (const text of hostile(found, length)) if (isSlow(found, text, EARLY_SECONDS)) return text;
  return undefined;
}

/** Return a text that is too slow, if there is one. The times of the texts of full length are added to `times`. */
function slowText(found: Found, length: number, seconds: number, times: number[] = []): string | undefined {
  const explosive = explosiveText(found);
  if (explosive !== undefined) return explosive;
  const timed = [...hostile(found, SHORT)].map((text, at) => ({ at, took: took(found, text) }));
  const slowest = new Set(
    timed
      .toSorted((a, b) => b.took - a.took)
      .slice(0, 5)
      .map(({ at }) => at),
  );
  let at = 0;
  for (const text of hostile(found, length))
    if (slowest.has(at++)) {
      times.push(shortestTime(found, text, seconds));
      if (times.at(-1)! > seconds) return text;
    }
  return undefined;
}

/** Return a text for which the time grows faster than the length. The ratio of times hardly depends on the load. */
function growingText(found: Found): string | undefined {
  const explosive = explosiveText(found);
  if (explosive !== undefined) return explosive;
  const timed = [...hostile(found, PROBE_LENGTH)].map((text, at) => ({ at, took: took(found, text) }));
  const slowest = timed.toSorted((a, b) => b.took - a.took)[0];
  if (!slowest || slowest.took < PROBE_SECONDS) return undefined;
  const [short, long] = [STEP, STEP * FACTOR].map((length) => [...hostile(found, length)][slowest.at]!) as [
    string,
    string,
  ];
  const grows = () => took(found, long) > GROWTH * took(found, short);
  return [1, 2, 3].every(grows) ? long : undefined;
}

async function named(textOf: (found: Found) => string | undefined): Promise<string[]> {
  const all = await patterns();
  expect(all.length).toBeGreaterThan(150);
  return all.flatMap((found) => {
    const text = textOf(found);
    const name = `${found.where} ${String(found.expression).slice(0, 90)}`;
    return text === undefined ? [] : [`${name}: ${JSON.stringify(text.slice(0, 20))}`];
  });
}

const QUADRATIC = [/(?:a+)+b/u, /x*y/u, /<a[^>]*>/u];

test("every regular expression is created at load time", async () => {
  expect((await patterns()).length).toBeGreaterThan(150);
});

// The tests below measure time, so only `make soak` runs them.
const SOAK = process.env["SOAK"] !== undefined;

test.runIf(SOAK)("regular expressions take linear time", { timeout: 120_000 }, async () => {
  expect(await named(growingText)).toEqual([]);
});

test.runIf(SOAK).each(QUADRATIC)(
  "superlinear running time of the expression %s is detected",
  { timeout: 60_000 },
  (expression) => {
    expect(growingText({ where: "here", expression })).toBeDefined();
  },
);

test.runIf(SOAK)("no regular expression is quadratic", { timeout: 600_000 }, async () => {
  expect(await named((found) => slowText(found, LENGTH, SECONDS))).toEqual([]);
});

test.runIf(SOAK)("every regular expression reads a megabyte in a second", { timeout: 600_000 }, async () => {
  const times: number[] = [];
  const slow = await named((found) => slowText(found, MEGABYTE, MEGABYTE_SECONDS, times));
  const figures = `${(await patterns()).length} cases, ${slow.length} failures, slowest ${Math.max(...times).toFixed(2)} s`;
  console.info(`sweep of the app's regular expressions, 1,000,000 characters: ${figures}`);
  expect(slow).toEqual([]);
});

test.runIf(SOAK).each(QUADRATIC)("the slow expression %s is detected", (expression) => {
  expect(slowText({ where: "here", expression }, LENGTH, SECONDS)).toBeDefined();
});
