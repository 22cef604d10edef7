/** The model in Chromium gives the token ids and vectors of the server. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { Embedder, Manifest } from "../../web/src/embedder/embedder.ts";
import { spelled, type Text } from "../conformance/cases.ts";
import { browser, currentModel, harness, MODELS, withBrowser } from "./browser.ts";

interface VectorSample {
  ids: number[];
  count: number;
  vector?: number[];
}

/** The vectors of every n-th text are compared, and the token ids of all texts. */
const EVERY = process.env["SOAK"] ? 1 : 9;

const ALIKE = 0.9999;
/** Random Unicode cases that the two tokenizers split differently: at most 1% of all cases, currently none. */
const DIFFERENT: string[] = [];
const cases = (
  JSON.parse(readFileSync("tests/conformance/texts.json", "utf8")) as { name: string; text: Text }[]
).map(({ name, text }) => ({ name, text: spelled(text) }));

let model: Manifest & { id: string };
let page: Page;

withBrowser();
beforeAll(async () => {
  model = await currentModel();
  page = await opened(0);
});

/** Open a page whose `model` is the embedder. */
async function opened(threads: number): Promise<Page> {
  const page = await browser.page(`${harness.url}/embedder.html`);
  await page.evaluate(
    async ([manifest, threads]) => {
      Object.assign(window, { model: await window.embedder.open(manifest, { threads }) });
    },
    [model, threads] as const,
  );
  return page;
}

declare const window: Window & { model: Embedder };

/** Return the token ids of all texts, and the vector of every n-th text. */
function make(page: Page, texts: string[], every = 1): Promise<VectorSample[]> {
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

/** Return the server's results for all cases. */
function compute(): Record<string, VectorSample> {
  const program = [
    ".venv/bin/python",
    "tests/e2e/vectors.py",
    join(MODELS, model.id),
    String(EVERY),
  ] as const;
  const [command, ...rest] = program;
  return JSON.parse(execFileSync(command, rest, { encoding: "utf8", maxBuffer: 2 ** 26 })) as Record<
    string,
    VectorSample
  >;
}

/** Return the cosine of two unit vectors. */
function cosine(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, n) => sum + value * b[n]!, 0);
}

test("token ids and vectors equal the server's", async () => {
  const expected = compute();
  const found = await make(
    page,
    cases.map(({ text }) => text),
    EVERY,
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
    .filter(({ n }) => n % EVERY === EVERY - 1)
    .map(({ name, n }) => ({ name, cosine: cosine(expected[name]!.vector!, found[n]!.vector!) }))
    .filter(({ name, cosine }) => !DIFFERENT.includes(name) && !(cosine >= ALIKE && cosine <= 1.0001));
  expect(far).toEqual([]);
});

test("a question runs before waiting passages", async () => {
  const order = await page.evaluate(async () => {
    const order: string[] = [];
    const passages = window.model.passages(Array.from({ length: 8 }, (_, n) => `bee ${n}`));
    const question = window.model.query("bees");
    await Promise.all([
      passages.then(() => order.push("passages")),
      question.then(() => order.push("question")),
    ]);
    return order;
  });
  expect(order).toEqual(["question", "passages"]);
});

test("aborted passages are removed from the embedding queue", async () => {
  const [reason, left] = await page.evaluate(async () => {
    const deleted = new AbortController();
    const texts = Array.from({ length: 1000 }, (_, n) => `A thousand texts would take a minute: ${n}.`);
    const passages = window.model.passages(texts, deleted.signal).catch((error: unknown) => String(error));
    deleted.abort("deleted");
    return [await passages, (await window.model.passages(["what comes after"])).length];
  });
  expect(reason).toBe("deleted");
  expect(left).toBe(model.dims);
});

test("two threads give the same vectors as one thread", async () => {
  const texts = cases.filter(({ name }) => name.startsWith("en ")).map(({ text }) => text);
  const before = browser.requests.length;
  const threaded = await opened(2);
  const [one, two] = [await make(page, texts), await make(threaded, texts)];
  one.forEach((found, n) => expect(cosine(found.vector!, two[n]!.vector!)).toBeGreaterThan(0.999999));
  const loads = browser.requests.slice(before).filter((url) => /ort-wasm.*\.mjs$/.test(url));
  expect(loads.length).toBeGreaterThanOrEqual(2); // for the worker and for its thread
});

test("the embedder sends requests only to the server", () => {
  const urls = browser.requests.map((url) => new URL(url));
  // Check that requests of workers are recorded.
  expect(urls.map(({ pathname }) => pathname)).toContain(`/models/${model.hash}/model.onnx`);
  expect(urls.filter(({ origin, protocol }) => protocol !== "data:" && origin !== harness.url)).toEqual([]);
  expect(browser.consoleErrors).toEqual([]);
});

test("closing the embedder rejects pending calls", async () => {
  const outcome = await page.evaluate(async () => {
    const waiting = window.model.passages(["a", "b"]).catch((error: unknown) => String(error));
    window.model.close();
    return [await waiting, await window.model.query("c").catch((error: unknown) => String(error))];
  });
  expect(outcome).toEqual(["Error: The embedder is closed.", "Error: The embedder is closed."]);
});
