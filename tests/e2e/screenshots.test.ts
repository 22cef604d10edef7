/**
 * Pictures of the app, as the README shows them: none is blank, none is wider than its window.
 * With SCREENSHOTS=1 they are kept in tests/e2e/screenshots.
 */

import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { violations } from "./accessibility.ts";
import { Device, withServer, harness } from "./app.ts";
import { MODELS } from "./browser.ts";
import { furnish } from "./sample_library.ts";

const KEPT = "tests/e2e/screenshots";
const FOLDER = process.env["SCREENSHOTS"] ? KEPT : mkdtempSync(join(tmpdir(), "vademecum-pictures-"));
const [BLANK, LARGE] = [12_000, 150_000]; // bytes: an empty window packs to five thousand
const WINDOWS = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

let device: Device;
let page: Page;

withServer(FOLDER === KEPT ? { VADEMECUM_MODELS: MODELS } : {}); // words find the passage, too
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

async function picture(name: string, window: keyof typeof WINDOWS, colorScheme: "light" | "dark") {
  await page.setViewportSize(WINDOWS[window]);
  expect(await violations(page, [colorScheme])).toEqual([]);
  const [wide, room] = await page.evaluate(
    () => [document.scrollingElement!.scrollWidth, innerWidth] as const,
  );
  expect(wide, name).toBeLessThanOrEqual(room);
  const png = await page.screenshot({ animations: "disabled", caret: "hide" });
  writeFileSync(join(FOLDER, `${name}.png`), png);
  expect(png.length, name).toBeGreaterThan(BLANK);
  expect(png.length, name).toBeLessThanOrEqual(LARGE);
}

test("chat and passage", async () => {
  await device.navigate("/s/flat");
  await page.getByText("Lease Harbour Street.pdf").first().waitFor();
  await device.ask("When is the rent due, and how much notice do I have to give?");
  const cited = page.getByRole("button", { name: "Lease Harbour Street.pdf, page 3" });
  await cited.waitFor();
  await picture("conversation-phone", "phone", "light");
  await picture("conversation-dark", "desktop", "dark");
  await cited.click();
  await page.getByRole("dialog").locator("mark").waitFor();
  await picture("conversation", "desktop", "light");
  await picture("passage-phone", "phone", "dark");
  await page.keyboard.press("Escape");
});

test("documents", async () => {
  await device.navigate("/documents");
  await page.getByRole("link", { name: "Contents insurance.pdf" }).waitFor();
  await picture("documents", "desktop", "dark");
  await picture("documents-phone", "phone", "dark");
});

test("memory", async () => {
  await device.navigate("/memory");
  await page.getByText("Harbour Street 14, second floor").waitFor();
  await page.getByText("Prefers short answers").waitFor();
  await picture("memory", "desktop", "light");
  await picture("memory-phone", "phone", "dark");
});

test("settings and sync details", async () => {
  await device.navigate("/settings");
  await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
  await picture("settings", "desktop", "light");
  await page.locator("[data-status]").click();
  await page.getByRole("dialog").waitFor();
  await picture("sync", "desktop", "dark");
  await picture("sync-phone", "phone", "light");
});
