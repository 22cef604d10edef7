/**
 * multilingual-e5-small in Chromium, with its weights in 4 bits (tests/multilingual_stand_in.py): the vectors of the server,
 * and an answer in another language without a network.
 */

import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Device, harness, withOwnServer } from "./app.ts";
import { expectGoldenVectors } from "./golden_vectors.ts";

const STAND_IN = "multilingual-e5-small-4bit";
const RENT = "إيجار الشقة في شارع الميناء 940 يورو في الشهر.";

const models = mkdtempSync(join(tmpdir(), "vademecum-models-"));
// The server chooses a model by the name of its folder.
symlinkSync(resolve(".cache/multilingual", STAND_IN), join(models, "multilingual-e5-small"));
afterAll(() => rmSync(models, { recursive: true }));
withOwnServer({ VADEMECUM_MODELS: models });

test("an Arabic passage answers an English question offline, with the vectors of the server", async () => {
  const device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
  await device.modelReady(); // downloaded
  await device.drop("lease.md", `# عقد\n\n${RENT}\n\nمدة الإشعار ثلاثة أشهر.\n`, "text/markdown");
  await device.embedded(1);
  await device.setOffline(true);
  await device.call("syncNow"); // an open stream survives the emulated loss of the network
  await device.page.reload();
  await device.ask("What does housing cost me?");
  await device.page.getByText("940 يورو").waitFor();
  await device.setOffline(false);
  await expectGoldenVectors(device, STAND_IN);
});
