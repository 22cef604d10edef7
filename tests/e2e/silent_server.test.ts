/** A server that accepts requests but never responds, or that has signed the browser out. */

import { FaultProxy } from "../sync/faultProxy.ts";
import { Device, harness, withServer, composerOf } from "./app.ts";

withServer();

let device: Device;
beforeAll(async () => {
  device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
});

test("a file added on a signed-out device becomes a document", async () => {
  await device.untilSyncIs("live");
  await device.page.context().clearCookies();
  await device.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await device.until(async () => (await device.state()).uploads.some(({ stage }) => stage !== "waiting"));
  await device.until(async () => (await device.rows("documents")).length === 1);
});

test("the app opens while the server is silent", async () => {
  const page = await device.page.context().newPage();
  await page.context().route("**/v1/me", () => {}); // accepted but never answered
  await page.goto(harness.url);
  await composerOf(page).waitFor();
});

test("the first question does not wait for pending requests", async () => {
  const proxy = await FaultProxy.open(harness);
  proxy.stall = (path) => path.endsWith(".wasm"); // the runtime of the model does not arrive either
  const first = await Device.of(await harness.user(), { origin: proxy.url }); // nothing is cached yet
  await first.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await first.embedded(1);
  await first.modelReady();
  // Each pending request takes one of the browser's six connections.
  proxy.stall = (path) => path.startsWith("/v1/") || path.endsWith(".wasm");
  await first.page.reload();
  await first.page.locator('[data-status="starting"]').waitFor();
  await first.ask("How much is the rent?");
  await first.page.getByText("Quoted from your documents").waitFor({ timeout: 20_000 }); // the idle timeout is 30 s
  await first.stop();
  proxy.close();
});
