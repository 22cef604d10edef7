/** An update of the app that migrates the stored rows, while tabs of the old version are open. */

import type { Page } from "playwright-core";
import { FaultProxy } from "../sync/faultProxy.ts";
import { Device, harness, withServer, composerOf } from "./app.ts";
import { FAILS, release, renew, withNewerApp } from "./newer_app.ts";

withServer();
withNewerApp();

const WAITS = "Vademecum is open in another tab with a different version.";
const ASKED = "Another tab has a newer version of the app.";
const PROMPT = "A new version is available. Anything you are writing is kept.";
const FAILED = "This version could not convert your data on this device to its new format.";
const OUTDATED = "A newer version of Vademecum was opened on this device";

const note = (page: Page, key: string) =>
  page.evaluate((key) => (window as any).vademecum.addFact(key, "true"), key);

async function openNewer(device: Device): Promise<Page> {
  const page = await device.page.context().newPage();
  await renew(page);
  await page.goto(harness.url);
  return page;
}

/** Return the key of each fact with the value that the migration adds. */
async function facts(page: Page): Promise<Record<string, string>> {
  const rows: Record<string, string>[] = await page.evaluate(() => (window as any).vademecum.rows("facts"));
  return Object.fromEntries(rows.map(({ key, shade }) => [key, shade!]));
}

test("a new version opens although an idle tab has the old version", async () => {
  const device = await Device.of(await harness.user());
  await note(device.page, "before");
  await composerOf(device.page).fill("Half a question");
  const newer = await openNewer(device);
  await composerOf(newer).waitFor();
  expect(await facts(newer)).toEqual({ before: "green" });
  await device.page.getByRole("alert").getByText(OUTDATED).waitFor();
  await renew(device.page);
  await device.page.getByRole("button", { name: "Update now" }).click();
  await composerOf(device.page).waitFor();
  expect(await composerOf(device.page).inputValue()).toBe("Half a question");
  expect(await facts(device.page)).toEqual({ before: "green" });
});

test("a new version waits for a busy tab with the old version", async () => {
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
  await composerOf(newer).waitFor();
  expect(await facts(newer)).toEqual({ before: "green", meanwhile: "green" });
  device.page = newer;
});

test("an export delays the reload for a new version", async () => {
  const { page, user } = await Device.of(await harness.user());
  await page.context().route("**/assets/exportAccount-*.js", async (route) => {
    await page.getByText(ASKED).waitFor(); // let the request to reload arrive during the export
    // Stop the requests, so that the page does not reload after the export.
    await page.evaluate(() => clearInterval((window as any).asking));
    await route.fallback();
  });
  const exported = await page.evaluate(async (name) => {
    const exporting = (window as any).vademecum.exportAccount();
    (window as any).asking = setInterval(() => new BroadcastChannel(name).postMessage(null), 500);
    return (await exporting).size;
  }, `vademecum-asked-${user.userId}`);
  expect(exported).toBeGreaterThan(0);
  const isBusyWith = (verb: string) =>
    page.evaluate(async (verb) => {
      const { vademecum } = window as any;
      const doing = vademecum[verb](new Blob(["no ZIP"])).catch(() => {});
      const [during] = await Promise.all([vademecum.isBusy(), doing]);
      return [during, await vademecum.isBusy()];
    }, verb);
  expect(await isBusyWith("importAccount")).toEqual([true, false]); // even if it fails
});

test("an update applies to all tabs on request", async () => {
  const proxy = await FaultProxy.open(harness);
  const device = await Device.of(await harness.user(), { installs: true, origin: proxy.url });
  const { page } = device;
  await device.installed();
  await note(page, "before");
  await page.reload(); // served by the service worker
  await composerOf(page).fill("Half a question");
  const other = await page.context().newPage();
  await other.goto(proxy.url);
  await composerOf(other).fill("Half another");

  release(proxy);
  await page.evaluate(async () => (await navigator.serviceWorker.getRegistration())!.update());
  await Promise.all([page, other].map((tab) => tab.getByText(PROMPT).waitFor()));
  await other.reload(); // a reload alone does not apply the update
  await composerOf(other).waitFor();
  expect(await facts(other)).toEqual({ before: undefined });
  await other.getByText(PROMPT).waitFor();

  await page.getByRole("button", { name: "Update now" }).click();
  await vi.waitFor(async () => {
    for (const tab of [page, other]) expect(await facts(tab)).toEqual({ before: "green" });
  }, 60_000);
  expect(await composerOf(page).inputValue()).toBe("Half a question");
  expect(await composerOf(other).inputValue()).toBe("Half another");

  await device.setOffline(true);
  await page.reload();
  await composerOf(page).waitFor();
  expect(await facts(page)).toEqual({ before: "green" });
  proxy.close();
});

test("a failed migration is retried at each load", async () => {
  const { page } = await Device.of(await harness.user());
  await note(page, "before");
  await page.evaluate((name) => caches.open(name), FAILS);
  await renew(page);
  for (let loads = 0; loads < 2; loads++) {
    await page.reload();
    await page.getByRole("alert").getByText(FAILED).waitFor();
  }
  await page.evaluate((name) => caches.delete(name), FAILS);
  await page.reload();
  await composerOf(page).waitFor();
  expect(await facts(page)).toEqual({ before: "green" });
});
