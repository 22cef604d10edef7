/** The model in Chromium gives the token ids and vectors of the server. */

import { join } from "node:path";
import type { Page } from "playwright-core";
import type { Embedder, Manifest } from "../../web/src/embedder/embedder.ts";
import { browser, currentModel, harness, MODELS, withBrowser } from "./browser.ts";
import { cases, cosine, embedTexts, expectServerVectors, openEmbedder } from "./server_vectors.ts";

/** The vectors of every n-th text are compared, and the token ids of all texts. */
const EVERY = process.env["SOAK"] ? 1 : 9;

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
  await openEmbedder(page, model, threads);
  return page;
}

declare const window: Window & { model: Embedder };

test("token ids and vectors equal the server's", () =>
  expectServerVectors(page, join(MODELS, model.id), EVERY));

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
  const [one, two] = [await embedTexts(page, texts), await embedTexts(threaded, texts)];
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
