/** The server becomes unreachable on the first visit, before the parsers are loaded. */

import { Device, harness, withOwnServer } from "./app.ts";

withOwnServer();

const TEXT = "The ferry leaves the harbour at noon.";
let device: Device;
beforeAll(async () => void (device = await Device.of(await harness.user())));

const stageOf = async (name: string) =>
  (await device.state()).uploads.find((task) => task.name === name)?.stage;
const isKind = (kind: string) => device.until(async () => (await device.state()).sync.kind === kind);
const has = (name: string) =>
  device.until(async () => (await device.rows("documents")).some(({ filename }) => filename === name));

/** Expect that a file waits for the server and is uploaded when it is back. */
async function expectWaits(name: string, content: string): Promise<void> {
  await harness.control("kill");
  await isKind("offline");
  await device.drop(name, content);
  await device.until(async () => (await stageOf(name)) === "needs-server");
  expect(await device.waitingFiles()).toBe(1);
  await harness.control("start");
  await has(name);
  await device.until(async () => (await device.waitingFiles()) === 0);
  expect(await device.composer.isVisible()).toBe(true);
}

test("a file waits for the server if the parser worker cannot be loaded", () =>
  expectWaits("letter.txt", TEXT));

test("a file waits for the server if its parser cannot be loaded", async () => {
  await device.reopen(); // a module that failed to load fails until the page is reloaded
  await isKind("live");
  const context = device.page.context();
  await context.route("**/v1/**", (route) => route.abort());
  await device.call("syncNow");
  await isKind("offline");
  await device.drop("read here.txt", `${TEXT} It returns at night.`); // this loads the worker
  await has("read here.txt");
  await context.unroute("**/v1/**");
  await isKind("live");
  await expectWaits("letter.html", `<html><p>${TEXT} In winter it does not.</p></html>`);
});

test("a file waits for the server if the chunker cannot be loaded", async () => {
  // The page requests the chunker when it opens.
  await device.page.context().route("**/assets/chunking-*.js", (route) => route.abort());
  await device.reopen();
  await isKind("live");
  await expectWaits("notes.txt", `${TEXT} Notes.`);
});
