/** E5-small-v2 with its real weights in Chromium: the vectors of the published model, and an answer without a network. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Page } from "playwright-core";
import type { Embedder, Manifest } from "../../web/src/embedder/embedder.ts";
import { Device, harness, withOwnServer } from "./app.ts";

const MODELS = resolve(process.env["VADEMECUM_TEST_E5"] ?? ".cache/e5");
const GOLDEN = JSON.parse(readFileSync("tests/unit/engines/onnx/golden/e5-small-v2.json", "utf8")) as {
  texts: string[];
  ids: number[][];
  vectors: number[][];
};
const RENT = "The rent of the flat in Harbour Street is 940 euros a month, due on the third working day.";

declare const window: Window & { model: Embedder };

withOwnServer({ VADEMECUM_MODELS: MODELS });

/** Return the token ids and the vector of each golden text, as the page computes them. */
function compute(page: Page, manifest: Manifest): Promise<{ ids: number[]; vector: number[] }[]> {
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
    [manifest, GOLDEN.texts] as const,
  );
}

test("E5 answers by meaning offline, with the vectors of the published model", async () => {
  const device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
  await device.modelReady(); // downloaded
  await device.drop("lease.md", `# Lease\n\n${RENT}\n\nNotice is three months.\n`, "text/markdown");
  await device.embedded(1);
  await device.setOffline(true);
  await device.call("syncNow"); // an open stream survives the emulated loss of the network
  await device.page.reload();
  await device.ask("What does housing cost me?"); // shares no words with the lease
  await device.page.getByText("940 euros a month").waitFor();
  await device.setOffline(false);

  const { models } = await harness.request<{ models: (Manifest & { id: string })[] }>(
    device.user,
    "/v1/models",
  );
  const e5 = models.find(({ id }) => id === "e5-small-v2")!;
  const page = await device.open("/embedder.html");
  const computed = await compute(page, e5);
  expect(computed.map(({ ids }) => ids)).toEqual(GOLDEN.ids);
  const cosines = computed.map(({ vector }, n) =>
    vector.reduce((sum, value, at) => sum + value * GOLDEN.vectors[n]![at]!, 0),
  );
  expect(Math.min(...cosines)).toBeGreaterThanOrEqual(0.9999);
});
