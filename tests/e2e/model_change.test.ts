/** The app switches to a new model of the server while it is open. */

import { cpSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, harness, withOwnServer } from "./app.ts";
import { SMALL_MODEL } from "./browser.ts";

const folder = mkdtempSync(join(tmpdir(), "vademecum-models-"));
const models = join(folder, "models");

beforeAll(() => cpSync(SMALL_MODEL, join(folder, "later"), { recursive: true }));
afterAll(() => rmSync(folder, { recursive: true }));
withOwnServer({ VADEMECUM_MODELS: models });

test("the open app offers a new model of the server", async () => {
  const device = await Device.of(await harness.user(), { asksForModel: true });
  await device.until(async () => (await device.state()).model.kind === "none");
  renameSync(join(folder, "later"), models);
  await harness.control("restart");
  await device.navigate("/documents");
  await device.clickButton("Download");
  await device.modelReady();
});
