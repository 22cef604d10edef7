/** The app says the size of the search model and asks before it downloads it. Until then, search matches words. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelInfo } from "../../web/src/backend/library/embeddingModel.ts";
import { downloadSize, filesOf } from "../../web/src/embedder/modelFiles.ts";
import { bytes } from "../../web/src/locale/format.ts";
import { Device, harness, withOwnServer } from "./app.ts";

const PIECE = 2 ** 20;
/** Number of times that a download of a piece is attempted before it fails. */
const ATTEMPTS = 5;
const models = mkdtempSync(join(tmpdir(), "vademecum-models-"));

beforeAll(() => void execFileSync(".venv/bin/python", ["tests/e2e/small_model.py", models]));
afterAll(() => rmSync(models, { recursive: true }));
withOwnServer({ VADEMECUM_MODELS: models });

let device: Device;
beforeEach(async () => {
  device = await Device.of(await harness.user(), { asksForModel: true });
  await untilModelIs("offered");
});
afterEach(() => device.stop());

const untilModelIs = (kind: string) => device.until(async () => (await device.state()).model.kind === kind);

const downloads = () => device.browser.requests.filter((url) => url.endsWith("/model.onnx"));

async function currentModel(): Promise<ModelInfo> {
  type Models = { current: string; models: ModelInfo[] };
  const { current, models } = await harness.request<Models>(device.user, "/v1/models");
  return models.find(({ hash }) => hash === current)!;
}

const size = async () => bytes(downloadSize(await currentModel()));

test("the model is downloaded only after consent, and words answer meanwhile", async () => {
  await device.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await device.embedded(1);
  await device.ask("How much is the rent?");
  await device.page.getByText("Quoted from your documents").waitFor();
  await device.clickLink("Documents");
  await device.page.getByText(`Download the search model (${await size()})?`).waitFor();
  await device.expectAccessible();
  expect(downloads()).toEqual([]);
  await device.clickButton("Download");
  await device.modelReady();
  expect(await device.page.getByText("Download the search model").count()).toBe(0);
});

test("a declined model is not offered again, but the settings can download it", async () => {
  await device.navigate("/documents");
  await device.clickButton("Not now");
  await device.page.getByText("Download the search model").waitFor({ state: "detached" });
  await device.reload();
  await untilModelIs("offered");
  expect((await device.state()).model).toMatchObject({ isDeclined: true });
  await device.page.getByRole("heading", { name: "Documents", exact: true }).waitFor();
  expect(await device.page.getByText("Download the search model").count()).toBe(0);
  expect(downloads()).toEqual([]);
  await device.navigate("/settings");
  await device.page.getByText(`The search model (${await size()}) has not been downloaded`).waitFor();
  expect(await device.page.getByRole("button", { name: "Not now" }).count()).toBe(0);
  await device.clickButton("Download");
  await device.page.getByText("Search by meaning works on this device").waitFor();
});

test("a download that was cut off is resumed without asking again", async () => {
  // The first piece arrives. All attempts at the second one are cut off.
  await harness.control("truncateDownloads", { after: [2 * PIECE, ...Array(ATTEMPTS).fill(PIECE / 2)] });
  await device.navigate("/settings");
  await device.clickButton("Download");
  await device.page.getByText("The part already downloaded is kept").waitFor();
  await device.modelReady();
  const pieces = Math.ceil(filesOf(await currentModel())[0]!.bytes / PIECE);
  expect(downloads()).toHaveLength(pieces + ATTEMPTS);
});
