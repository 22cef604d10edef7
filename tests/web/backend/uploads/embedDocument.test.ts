/** Embed documents when the model has crashed or is unavailable, or when the server embeds them. */

import type { Embedder } from "../../../../web/src/embedder/embedder.ts";
import { EmbeddingModel } from "../../../../web/src/backend/library/embeddingModel.ts";
import { T } from "../../device.ts";
import {
  insertBrokenOff,
  MODEL,
  openUploads,
  records,
  slowModels,
  TEXT,
  texts,
  until,
  withUploads,
} from "../../uploads.ts";

withUploads();

test("a model crash while counting tokens loses no file", async () => {
  const failure = new Error("The embedder failed: out of memory");
  const dead = { countTokens: () => Promise.reject(failure) } as unknown as Embedder;
  const ifHere = vi.spyOn(EmbeddingModel.prototype, "embedderIfDownloaded").mockResolvedValue(dead);
  const discard = vi.spyOn(EmbeddingModel.prototype, "discard");
  onTestFinished(() => [ifHere, discard].forEach((spy) => spy.mockRestore()));
  const harness = openUploads(records);
  await harness.uploads.add([new File([TEXT], "ferry.txt")], null);
  const { id } = harness.uploads.tasks$.value[0]!;
  await until(harness, id, "done");
  expect(await texts(id)).toBe(TEXT);
  expect(discard.mock.calls).toEqual([[dead, failure]]);
});

test("resumed embedding does not delay new files", async () => {
  await insertBrokenOff("a");
  const { base, release } = await slowModels();
  const harness = openUploads(records, { base, model: MODEL });
  void harness.uploads.resume();
  harness.hear("offline");
  await until(harness, "a", "embedding");
  await harness.uploads.add([new File([TEXT], "ferry.txt")], null);
  await until(harness, harness.uploads.tasks$.value[1]!.id, "embedding");
  expect(harness.files.rows.size).toBe(0); // the text is stored, so the file is no longer needed
  release();
});

test("many rejected documents request the model only a few times", async () => {
  const { base, release, asked } = await slowModels();
  release();
  const ids = Array.from({ length: 20 }, (_, n) => `d${n}`);
  await insertBrokenOff(...ids);
  const harness = openUploads(records, { base, model: MODEL });
  void harness.uploads.resume();
  harness.hear("live");
  const syncError = { code: "DOCUMENT_LIMIT", message: "Full.", at: T };
  for (const row of await records.documents.find().exec()) await row.incrementalPatch({ syncError });
  harness.uploads.retryEmbedding("d0"); // runs after all tasks that were started before
  await until(harness, "d0", "done");
  expect(asked()).toBeLessThanOrEqual(3);
});

test("the device leaves pending documents for a busy server to embed", async () => {
  await insertBrokenOff("refused", "pending");
  const harness = openUploads(records);
  void harness.uploads.resume();
  harness.hear("busy");
  harness.uploads.retryEmbedding("refused"); // runs after all tasks that were started before
  await until(harness, "refused", "done");
  expect(harness.task("pending")).toBeUndefined();
});
