/** The side panel and the documents of a chat, on a desktop and on a phone. */

import type { Locator, Page } from "playwright-core";
import { violations } from "./accessibility.ts";
import { Device, harness, withServer } from "./app.ts";
import { soon } from "../soon.ts";
import { furnish } from "./sample_library.ts";

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

let device: Device;
let page: Page;

withServer();
beforeAll(async () => {
  const user = await harness.user();
  await furnish(user);
  device = await Device.of(user);
  page = device.page;
  page.setDefaultTimeout(60_000);
  await device.embedded(8);
  await device.navigate("/s/flat");
  await page.getByText("Lease Harbour Street.pdf").first().waitFor();
  await device.ask("How much notice do I have to give?");
  await page.getByText("Quoted from your documents").waitFor();
});

const box = async (what: Locator) => (await what.boundingBox())!;

test("the passage panel opens beside the chat", async () => {
  await page.setViewportSize(DESKTOP);
  const cited = page.getByRole("button", { name: "Lease Harbour Street.pdf, page 3" }).first();
  await cited.click();
  const panel = page.getByRole("dialog", { name: "Lease Harbour Street.pdf" });
  await panel.locator("mark").waitFor();
  const [beside, log] = [await box(panel), await box(page.getByRole("log"))];
  expect(log.x + log.width).toBeLessThanOrEqual(beside.x);
  expect(log.width).toBeGreaterThan(beside.width);
  await device.expectAccessible();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  // The focus returns shortly after the panel is removed.
  const isThere = (what: Locator) =>
    soon(async () => expect(await what.evaluate((one) => one === document.activeElement)).toBe(true));
  await isThere(cited); // the focus is back on the citation
  await cited.click();
  await panel.waitFor();
  await cited.focus();
  await page.keyboard.press("Escape"); // Escape works in the chat, too
  await panel.waitFor({ state: "detached" });
  await cited.click();
  await panel.waitFor();
  const writing = page.getByRole("textbox", { name: "Ask about your documents" });
  const close = panel.getByRole("button").first();
  await writing.focus();
  await close.evaluate((button: HTMLElement) => button.click()); // as a screen reader does, without moving the focus
  await panel.waitFor({ state: "detached" });
  await isThere(writing);
});

test("opening another citation replaces the passage", async () => {
  await page.setViewportSize(DESKTOP);
  const writing = page.getByRole("textbox", { name: "Ask about your documents" });
  await writing.fill("Does the cooperative answer letters about bicycles in the yard?");
  await writing.press("Enter");
  const second = page.getByRole("button", { name: "House rules.pdf, page 1" }).first();
  await second.waitFor();
  await page.getByText("Remembered, not from your documents:").waitFor();
  await page.getByText("The cooperative answers letters, not mails.").waitFor();
  await page.getByRole("button", { name: "Lease Harbour Street.pdf, page 3" }).first().click();
  const lease = page.getByRole("dialog", { name: "Lease Harbour Street.pdf" });
  await lease.locator("mark").waitFor();
  await device.expectAccessible();
  await second.click();
  const rules = page.getByRole("dialog", { name: "House rules.pdf" });
  await rules.locator("mark").getByText("Bicycles stand along the northern wall").waitFor();
  await lease.waitFor({ state: "detached" });
  const hasFocus = (what: Locator) => what.evaluate((one) => one.contains(document.activeElement));
  expect(await hasFocus(rules)).toBe(true);
  await page.keyboard.press("Escape");
  await rules.waitFor({ state: "detached" });
  expect(await hasFocus(second)).toBe(true);
});

test("a phone collapses the documents of a chat", async () => {
  await page.setViewportSize(PHONE);
  const title = page.getByRole("heading", { name: "Flat in Harbour Street" });
  const log = page.getByRole("log");
  const head = async () => (await box(log)).y - 52;
  const fold = page.getByRole("button", { name: "3 documents" });
  await title.waitFor();
  await fold.waitFor(); // wait for the layout of the phone
  await expect.poll(head).toBeLessThan(PHONE.height / 7);
  expect(await page.getByRole("button", { name: /^Return/u }).count()).toBe(0);
  await fold.click();
  await page.getByRole("button", { name: /^Remove House rules\.pdf/u }).waitFor();
  expect(await fold.getAttribute("aria-expanded")).toBe("true");
  await device.expectAccessible();
});

test.each(["light", "dark"] as const)("progress bars have contrast in the %s theme", async (colorScheme) => {
  await device.navigate("/documents");
  const bar = page.getByRole("progressbar", { name: "8 of 100 documents" });
  await bar.waitFor({ state: "attached" });
  expect(await violations(page, [colorScheme])).toEqual([]);
  const [done, rest] = await bar.evaluate((section) =>
    [section, section.parentElement!].map((one) => getComputedStyle(one).backgroundColor),
  );
  expect(contrast(done!, rest!)).toBeGreaterThan(3);
});

/** Return the contrast of two colors, `rgb(r, g, b)`, as defined by WCAG 2. */
function contrast(a: string, b: string): number {
  const [dark, light] = [a, b].map(luminance).sort((one, other) => one - other) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: string): number {
  const [r, g, b] = color.match(/[\d.]+/gu)!.map((value) => {
    const share = Number(value) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}
