/**
 * E5-small-v2 with its real weights in Chromium: the vectors of the published model, and an answer without a network. With
 * SOAK, all shared texts get the ids and vectors of the server.
 */

import { join, resolve } from "node:path";
import { Device, harness, withOwnServer } from "./app.ts";
import { expectGoldenVectors, manifestOf } from "./golden_vectors.ts";
import { expectServerVectors, openEmbedder } from "./server_vectors.ts";

const MODELS = resolve(process.env["VADEMECUM_TEST_E5"] ?? ".cache/e5");
const RENT = "The rent of the flat in Harbour Street is 940 euros a month, due on the third working day.";

withOwnServer({ VADEMECUM_MODELS: MODELS });

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
  await expectGoldenVectors(device, "e5-small-v2");
});

test.runIf(process.env["SOAK"])("E5 gives the server's ids and vectors for all shared texts", async () => {
  const device = await Device.of(await harness.user());
  const page = await device.open("/embedder.html");
  await openEmbedder(page, await manifestOf(device, "e5-small-v2"));
  await expectServerVectors(page, join(MODELS, "e5-small-v2"), 1);
});
