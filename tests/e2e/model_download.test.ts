/** The download of a model can be resumed, is checked against its hashes, and is not repeated. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { Manifest, Progress } from "../../web/src/embedder/embedder.ts";
import { eventually } from "../sync/eventually.ts";
import { browser, currentModel, harness, user, withBrowser } from "./browser.ts";

const PIECE = 2 ** 20;
const models = mkdtempSync(join(tmpdir(), "vademecum-models-"));
let model: Manifest;
let before: Manifest; // an earlier model of the server
let graph: Manifest["files"][number];

beforeAll(() => void execFileSync(".venv/bin/python", ["tests/e2e/small_model.py", models]));
afterAll(() => rmSync(models, { recursive: true }));
withBrowser(models);
beforeAll(async () => {
  model = await currentModel();
  const { models: all } = await harness.request<{ models: Manifest[] }>(user, "/v1/models");
  before = all.find(({ hash }) => hash !== model.hash)!;
  graph = model.files.find(({ path }) => path === "model.onnx")!;
});

/** Each test starts with an empty cache in a new page. */
let page: Page;
beforeEach(async () => {
  page = await fresh();
  await page.evaluate(async () => Promise.all((await caches.keys()).map((name) => caches.delete(name))));
});

function fresh(): Promise<Page> {
  return browser.page(`${harness.url}/embedder.html`);
}

/** Open the model. Return the progress of its download and the error, if any. */
function open(
  page: Page,
  manifest = model,
  stopAt = Infinity,
): Promise<{ progress: Progress[]; error: string | null }> {
  return page.evaluate(
    async ([manifest, stopAt]) => {
      const progress: { loaded: number; total: number }[] = [];
      const stop = new AbortController();
      const onProgress = (now: { loaded: number; total: number }) => {
        progress.push(now);
        if (now.loaded >= stopAt) stop.abort("stopped");
      };
      const opening = window.embedder.open(manifest, { onProgress, signal: stop.signal });
      const error = await opening.then(
        (embedder) => (embedder.close(), null),
        (error: unknown) => String(error),
      );
      return { progress, error };
    },
    [manifest, stopAt] as const,
  );
}

async function countDownloads(work: () => Promise<unknown>): Promise<number> {
  const before = browser.requests.length;
  await work();
  return browser.requests.slice(before).filter((url) => url.endsWith(graph.path)).length;
}

const pieces = () => Math.ceil(graph.bytes / PIECE);

test("an interrupted download resumes at the missing piece", async () => {
  await harness.control("truncateDownloads", { after: [PIECE / 2, PIECE / 4] });
  let opened!: Awaited<ReturnType<typeof open>>;
  const requests = await countDownloads(async () => (opened = await open(page)));
  expect(opened.error).toBe(null);
  expect(requests).toBe(pieces() + 2); // two retries of the interrupted piece
  const loaded = opened.progress.map((now) => now.loaded);
  expect(loaded).toEqual([...loaded].sort((a, b) => a - b));
  expect(opened.progress.at(-1)!.loaded).toBe(opened.progress.at(-1)!.total);
});

test("a download resumes after the page was closed", async () => {
  const first = await open(page, model, 3 * PIECE);
  expect(first.error).toBe("stopped");
  await page.close();
  const next = await fresh();
  const requests = await countDownloads(async () => expect((await open(next)).error).toBe(null));
  expect(requests).toBeLessThanOrEqual(pieces() - 3);
  expect(await countDownloads(async () => expect((await open(next)).error).toBe(null))).toBe(0);
});

test("a damaged model is downloaded again", async () => {
  expect((await open(page)).error).toBe(null);
  await page.evaluate(async () => {
    const [name] = await caches.keys();
    const cache = await caches.open(name!);
    const key = (await cache.keys()).find(({ url }) => url.includes("model.onnx"))!;
    const bytes = new Uint8Array(await (await cache.match(key))!.arrayBuffer());
    bytes[bytes.length >> 1]! ^= 1;
    await cache.put(key, new Response(bytes));
  });
  expect(await countDownloads(async () => expect((await open(page)).error).toBe(null))).toBe(pieces());
});

test("a model that differs from its manifest is refused", async () => {
  const files = model.files.map((file) => (file === graph ? file : { ...file, sha256: "0".repeat(64) }));
  expect((await open(page, { ...model, files })).error).toContain("differs from the file on the server");
  expect((await open(page, { ...model, hash: "0".repeat(64) })).error).toContain("404");
});

test("questions and passages get the prefixes of the manifest", async () => {
  const same = await page.evaluate(async (manifest) => {
    const bare = await window.embedder.open({ ...manifest, prefixes: { query: "", passage: "" } });
    const model = await window.embedder.open(manifest);
    const { query, passage } = manifest.prefixes;
    const expected = await bare.passages([`${query}a bee`, `${passage}a bee`]);
    const found = [...(await model.query("a bee")), ...(await model.passages(["a bee"]))];
    return [query !== passage, found.join() === expected.join()];
  }, model);
  expect(same).toEqual([true, true]);
});

/** Return the hashes of the models in the cache. */
async function cachedModels(page: Page): Promise<string[]> {
  const urls = await page.evaluate(async () => {
    const cache = await caches.open((await caches.keys())[0]!);
    return (await cache.keys()).map(({ url }) => url);
  });
  return [...new Set(urls.map((url) => url.split("/models/")[1]!.split("/")[0]!))].sort();
}

test("a completely downloaded model evicts the unused one", async () => {
  const old = await fresh();
  await old.evaluate(async (manifest) => {
    (window as any).held = await window.embedder.open(manifest); // the model stays open
  }, before);
  expect(await cachedModels(page)).toEqual([before.hash]);

  expect((await open(page, model, PIECE)).error).toBe("stopped");
  expect((await open(page)).error).toBe(null);
  expect(await cachedModels(page), "a tab uses the old model").toEqual([before.hash, model.hash].sort());

  await old.close();
  await eventually("the lock of the old model is released", () =>
    page.evaluate(async (hash) => {
      const { held = [] } = await navigator.locks.query();
      return !held.some(({ name }) => name?.includes(hash));
    }, before.hash),
  );
  expect((await open(page)).error).toBe(null);
  expect(await cachedModels(page)).toEqual([model.hash]);
});

test("an incomplete download evicts no model", async () => {
  expect((await open(page, before)).error).toBe(null);
  expect((await open(page, model, PIECE)).error).toBe("stopped");
  expect(await cachedModels(page)).toEqual([before.hash, model.hash].sort());
});
