/** Compare the token ids and vectors that a page computes for the shared texts with those of the server's embedder. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import type { Embedder, Manifest } from "../../web/src/embedder/embedder.ts";
import { spelled, type Text } from "../conformance/cases.ts";

interface VectorSample {
  ids: number[];
  count: number;
  vector?: number[];
}

const ALIKE = 0.9999;
/** Random Unicode cases that the two tokenizers split differently: at most 1% of all cases, currently none. */
const DIFFERENT: string[] = [];
export const cases = (
  JSON.parse(readFileSync("tests/conformance/texts.json", "utf8")) as { name: string; text: Text }[]
).map(({ name, text }) => ({ name, text: spelled(text) }));

declare const window: Window & { model: Embedder };

/** Open a model on the page /embedder.html as `window.model`. With 0 threads, onnxruntime chooses their number. */
export async function openEmbedder(page: Page, manifest: Manifest, threads = 0): Promise<void> {
  await page.evaluate(
    async ([manifest, threads]) => {
      Object.assign(window, { model: await window.embedder.open(manifest, { threads }) });
    },
    [manifest, threads] as const,
  );
}

/** Return the token ids of all texts, and the vector of every n-th text, by the embedder `window.model` of the page. */
export function embedTexts(page: Page, texts: string[], every = 1): Promise<VectorSample[]> {
  const whole = texts.filter((_, n) => n % every === every - 1);
  return page.evaluate(
    async ([texts, whole, every]) => {
      const { model } = window;
      const [vectors, counts] = await Promise.all([model.passages(whole), model.countTokens(texts)]);
      const ids = await Promise.all(
        texts.map((text) => model.tokens(model.manifest.prefixes.passage + text)),
      );
      const { dims } = model.manifest;
      const vector = (at: number) => Array.from(vectors.subarray(at * dims, (at + 1) * dims));
      return texts.map((_, n) => ({
        ids: ids[n]!,
        count: counts[n]!,
        ...(n % every < every - 1 ? {} : { vector: vector(Math.floor(n / every)) }),
      }));
    },
    [texts, whole, every] as const,
  );
}

/** Return the results of the server's embedder for all cases. */
function compute(folder: string, every: number): Record<string, VectorSample> {
  const program = ["tests/e2e/vectors.py", folder, String(every)];
  const printed = execFileSync(".venv/bin/python", program, { encoding: "utf8", maxBuffer: 2 ** 26 });
  return JSON.parse(printed) as Record<string, VectorSample>;
}

/** Return the cosine of two unit vectors. */
export function cosine(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, n) => sum + value * b[n]!, 0);
}

/** Expect the ids of all shared texts and the vector of every n-th text to equal those of the model in `folder`. */
export async function expectServerVectors(page: Page, folder: string, every: number): Promise<void> {
  const expected = compute(folder, every);
  const found = await embedTexts(
    page,
    cases.map(({ text }) => text),
    every,
  );
  expect(cases.length).toBeGreaterThanOrEqual(300);
  const otherIds = cases.filter(({ name }, n) => expected[name]!.ids.join() !== found[n]!.ids.join());
  expect(otherIds.map(({ name }) => name)).toEqual(DIFFERENT);
  expect(DIFFERENT.length).toBeLessThanOrEqual(cases.length / 100);
  expect(DIFFERENT.every((name) => name.startsWith("random "))).toBe(true);
  const alike = cases.filter(({ name }) => !DIFFERENT.includes(name));
  const counts = alike.map(({ name }) => [name, found[cases.findIndex((c) => c.name === name)]!.count]);
  expect(counts).toEqual(alike.map(({ name }) => [name, expected[name]!.count]));
  const far = cases
    .map(({ name }, n) => ({ name, n }))
    .filter(({ n }) => n % every === every - 1)
    .map(({ name, n }) => ({ name, cosine: cosine(expected[name]!.vector!, found[n]!.vector!) }))
    .filter(({ name, cosine }) => !DIFFERENT.includes(name) && !(cosine >= ALIKE && cosine <= 1.0001));
  expect(far).toEqual([]);
}
