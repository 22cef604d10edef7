/**
 * Take the screenshots of the README: none is blank, and no page is wider than its window. With SCREENSHOTS=1 they are
 * stored in tests/e2e/screenshots.
 */

import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { violations } from "./accessibility.ts";
import { Device, withServer, harness } from "./app.ts";
import { MODELS } from "./browser.ts";
import { furnish } from "./sample_library.ts";

const STORED = "tests/e2e/screenshots";
const FOLDER = process.env["SCREENSHOTS"] ? STORED : mkdtempSync(join(tmpdir(), "vademecum-screenshots-"));
const [BLANK, LARGE] = [12_000, 150_000]; // bytes; an empty window has about 5,000
const WINDOWS = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

let device: Device;
let page: Page;

withServer(FOLDER === STORED ? { VADEMECUM_MODELS: MODELS } : {}); // the real model only for the stored screenshots
beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  const user = await harness.user();
  await furnish(user);
  device = await Device.of(user);
  page = device.page;
  page.setDefaultTimeout(60_000);
  await device.modelReady();
  await device.embedded(8);
});

async function takeScreenshot(name: string, window: keyof typeof WINDOWS, colorScheme: "light" | "dark") {
  await page.setViewportSize(WINDOWS[window]);
  expect(await violations(page, [colorScheme])).toEqual([]);
  const [width, available] = await page.evaluate(
    () => [document.scrollingElement!.scrollWidth, innerWidth] as const,
  );
  expect(width, name).toBeLessThanOrEqual(available);
  const png = await page.screenshot({ animations: "disabled", caret: "hide" });
  writeFileSync(join(FOLDER, `${name}.png`), png);
  expect(png.length, name).toBeGreaterThan(BLANK);
  expect(png.length, name).toBeLessThanOrEqual(LARGE);
}

test("captures a chat and its passage", async () => {
  await device.navigate("/s/flat");
  await page.getByText("Lease Harbour Street.pdf").first().waitFor();
  await device.ask("When is the rent due, and how much notice do I have to give?");
  const cited = page.getByRole("button", { name: "Lease Harbour Street.pdf, page 3" });
  await cited.waitFor();
  await takeScreenshot("conversation-phone", "phone", "light");
  await takeScreenshot("conversation-dark", "desktop", "dark");
  await cited.click();
  await page.getByRole("dialog").locator("mark").waitFor();
  await takeScreenshot("conversation", "desktop", "light");
  await takeScreenshot("passage-phone", "phone", "dark");
  await page.keyboard.press("Escape");
});

test("captures the list of documents", async () => {
  await device.navigate("/documents");
  await page.getByRole("link", { name: "Contents insurance.pdf" }).waitFor();
  await takeScreenshot("documents", "desktop", "dark");
  await takeScreenshot("documents-phone", "phone", "dark");
});

test("captures the memory page", async () => {
  await device.navigate("/memory");
  await page.getByText("Harbour Street 14, second floor").waitFor();
  await page.getByText("Prefers short answers").waitFor();
  await takeScreenshot("memory", "desktop", "light");
  await takeScreenshot("memory-phone", "phone", "dark");
});

test("captures settings and sync details", async () => {
  await device.navigate("/settings");
  await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
  await takeScreenshot("settings", "desktop", "light");
  await page.locator("[data-status]").click();
  await page.getByRole("dialog").waitFor();
  await takeScreenshot("sync", "desktop", "dark");
  await takeScreenshot("sync-phone", "phone", "light");
});
