/** A newer version of the app beside a tab that was open before, when it gives the rows on the device another form. */

import type { Page } from "playwright-core";
import { Device, harness, withServer } from "./app.ts";
import { renew, withNewerApp } from "./newer.ts";

withServer();
withNewerApp();

const WAITS = "Another tab has this app open in another version.";
const ASKED = "A newer version in another tab waits until this page is loaded again.";
const OUTDATED = "A newer version of this app has been opened on this device";

const box = (page: Page) => page.getByRole("textbox", { name: "Ask about your documents" });
const note = (page: Page, key: string) =>
  page.evaluate((key) => (window as any).vademecum.addFact(key, "true"), key);

async function openNewer(device: Device): Promise<Page> {
  const page = await device.page.context().newPage();
  await renew(page);
  await page.goto(harness.url);
  return page;
}

/** The facts of the newer app, and which of them have its form. */
async function facts(page: Page): Promise<Record<string, string>> {
  const rows: Record<string, string>[] = await page.evaluate(() => (window as any).vademecum.rows("facts"));
  return Object.fromEntries(rows.map(({ key, shade }) => [key, shade!]));
}

test("a tab of the older version in which nothing gets lost makes way, and comes back with its draft", async () => {
  const device = await Device.of(await harness.user());
  await note(device.page, "before");
  await box(device.page).fill("Half a question");
  const newer = await openNewer(device);
  await box(newer).waitFor();
  expect(await facts(newer)).toEqual({ before: "green" });
  await device.page.getByRole("alert").getByText(OUTDATED).waitFor();
  await renew(device.page);
  await device.page.getByRole("button", { name: "Load the new version" }).click();
  await box(device.page).waitFor();
  expect(await box(device.page).inputValue()).toBe("Half a question");
  expect(await facts(device.page)).toEqual({ before: "green" });
});

test("what a tab of the older version still writes is there in the newer one, which waits for it", async () => {
  const device = await Device.of(await harness.user());
  const old = device.page;
  await note(old, "before");
  await old.getByRole("link", { name: "Projects", exact: true }).click();
  await old.getByRole("button", { name: "New project" }).click();
  await old.getByRole("textbox", { name: "Name" }).fill("Flat");
  const newer = await openNewer(device);
  await newer.getByRole("alert").getByText(WAITS).waitFor();
  await old.getByText(ASKED).waitFor();
  await note(old, "meanwhile");
  expect(await old.getByRole("textbox", { name: "Name" }).inputValue()).toBe("Flat");
  await old.close();
  await box(newer).waitFor();
  expect(await facts(newer)).toEqual({ before: "green", meanwhile: "green" });
  device.page = newer;
});

test("a tab that takes everything out, or in, does not make way before it has", async () => {
  const { page, user } = await Device.of(await harness.user());
  await page.context().route("**/assets/takeOut-*.js", async (route) => {
    await page.getByText(ASKED).waitFor(); // or it were done before anybody asks
    await route.fallback();
  });
  const taken = await page.evaluate(async (name) => {
    const taking = (window as any).vademecum.takeOut();
    const asking = setInterval(() => new BroadcastChannel(name).postMessage(null), 500);
    const { size } = await taking;
    clearInterval(asking);
    return size;
  }, `vademecum-asked-${user.userId}`);
  expect(taken).toBeGreaterThan(0);
  const isBusyWith = (verb: string) =>
    page.evaluate(async (verb) => {
      const { vademecum } = window as any;
      const doing = vademecum[verb](new Blob(["no ZIP"])).catch(() => {});
      const [during] = await Promise.all([vademecum.isBusy(), doing]);
      return [during, await vademecum.isBusy()];
    }, verb);
  expect(await isBusyWith("bringIn")).toEqual([true, false]); // also when it fails
});
