/** Compare the token ids and vectors that the page computes with those of a file in tests/unit/engines/onnx/golden. */

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import type { Embedder, Manifest } from "../../web/src/embedder/embedder.ts";
import { type Device, harness } from "./app.ts";

interface Golden {
  texts: string[];
  ids: number[][];
  vectors: number[][];
}

declare const window: Window & { model: Embedder };

/** Return the token ids and the vector of each text, as the page computes them. */
function compute(
  page: Page,
  manifest: Manifest,
  texts: string[],
): Promise<{ ids: number[]; vector: number[] }[]> {
  return page.evaluate(
    async ([manifest, texts]) => {
      const model = await window.embedder.open(manifest, {});
      const { query, passage } = manifest.prefixes;
      const embed = (text: string) =>
        text.startsWith(query)
          ? model.query(text.slice(query.length))
          : model.passages([text.slice(passage.length)]);
      const results = [];
      for (const text of texts) {
        results.push({ ids: await model.tokens(text), vector: Array.from(await embed(text)) });
      }
      model.close();
      return results;
    },
    [manifest, texts] as const,
  );
}

/** Return the manifest of a model that the server has. */
export async function manifestOf({ user }: Device, id: string): Promise<Manifest> {
  const { models } = await harness.request<{ models: (Manifest & { id: string })[] }>(user, "/v1/models");
  return models.find((model) => model.id === id)!;
}

/** Check that the device computes the ids and vectors that were recorded for the model with this id. */
export async function expectGoldenVectors(device: Device, id: string): Promise<void> {
  const golden = JSON.parse(readFileSync(`tests/unit/engines/onnx/golden/${id}.json`, "utf8")) as Golden;
  const page = await device.open("/embedder.html");
  const computed = await compute(page, await manifestOf(device, id), golden.texts);
  expect(computed.map(({ ids }) => ids)).toEqual(golden.ids);
  const cosines = computed.map(({ vector }, n) =>
    vector.reduce((sum, value, at) => sum + value * golden.vectors[n]![at]!, 0),
  );
  expect(Math.min(...cosines)).toBeGreaterThanOrEqual(0.9999);
}
