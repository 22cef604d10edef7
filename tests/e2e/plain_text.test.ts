/** Quotations and documents are shown without Markdown syntax. */

import type { Page } from "playwright-core";
import { Device, harness } from "./app.ts";
import { withAssistant } from "./scripted_assistant.ts";

withAssistant([{ when: "How high", say: ["**Sixteen** metres [1]."] }]);

const TIDES =
  "# About the tides\n\n**Neap tides** are the `low_*` ones.\n\n| where | metres |\n|---|---|\n| Fundy | 16 |\n";
const READ = "About the tides\n\nNeap tides are the low_* ones.\n\nwhere · metres\nFundy · 16";
const MARKS = /[#|]|\*\*|---/u;

let device: Device;
let page: Page;
beforeAll(async () => {
  device = await Device.of(await harness.user(), { installs: true });
  page = device.page;
  await device.installed();
  await page.reload(); // now the service worker serves the app
  page.setDefaultTimeout(30_000);
});

test("quotations are shown without Markdown syntax", async () => {
  await device.drop("tides.md", TIDES);
  await device.embedded(1);
  const [document] = await device.rows("documents");
  await device.ask("How high are they?");
  await page.getByText("Sixteen metres").waitFor();
  await page.getByRole("button", { name: "What the assistant saw" }).click();
  const shown = page.getByRole("dialog").locator("blockquote");
  await shown.getByText("Neap tides are").waitFor();
  expect(await shown.innerText()).not.toMatch(MARKS);
  await page.getByRole("button", { name: "Close", exact: true }).click();

  await device.setOffline(true);
  await device.ask("What are neap tides?");
  const quote = page.getByRole("article").locator("blockquote");
  await quote.getByText("Neap tides are the low_* ones.").waitFor();
  expect(await quote.innerText()).not.toMatch(MARKS);
  await page.getByRole("button", { name: "What an assistant would see" }).click();
  const preview = page.getByRole("dialog", { name: "What an assistant would see" });
  await preview.getByText("[DOCUMENT CONTEXT]").waitFor();
  const prompt = await preview.locator("pre").innerText();
  expect(prompt).toContain("User: How high are they?\nAssistant: **Sixteen** metres (1).");
  expect(prompt).toContain("Source: tides.md [1]\n");
  expect(prompt).not.toContain("What are neap tides?"); // the question follows the prompt
  await preview.getByText(/Documents: (?!0%)[\d.]+% of the available space/u).waitFor();
  await page.getByRole("button", { name: "Close", exact: true }).click();
  await device.setOffline(false);
  await device.untilSyncIs("live");
  await quote.getByRole("button", { name: "tides.md" }).click();
  const beside = page.getByRole("dialog", { name: "tides.md" });
  expect((await beside.locator("mark").innerText()).trim()).toBe(READ);
  await beside.getByRole("button", { name: "Close passage" }).click();

  await device.navigate(`/documents/${document!.id}`);
  const text = page.getByRole("region", { name: "Document text" });
  await text.getByText("Neap tides are").waitFor();
  await expect.poll(async () => (await text.innerText()).trim()).toBe(READ); // the rest may still load

  await device.navigate("/memory/timeline");
  const turns = page.getByRole("main").getByRole("listitem");
  await turns.getByText("Sixteen metres.").waitFor();
  expect((await turns.allInnerTexts()).join("\n")).not.toMatch(/[#|>\\]|\*\*|\[1\]/u);
});

test("waiting uploads can be canceled, and failed uploads are grouped", async () => {
  const tray = page.getByRole("region", { name: "Uploads" });
  const failed = tray.getByRole("region", { name: "Failed files" });
  const files = (names: readonly string[], text: string) =>
    names.map((name) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text && text + name) }));
  let resume = () => {};
  const resumed = new Promise<void>((resolve) => (resume = resolve));
  await page.context().route("**/v1/documents*", async (route) => {
    await resumed;
    await route.continue();
  });
  await device.navigate("/");
  const input = page.locator("input[type=file]").first();
  await input.setInputFiles(files(["1.txt", "2.txt", "3.txt", "4.txt", "5.txt"], "The ferry leaves at "));
  await tray.getByRole("button", { name: "Cancel 4 waiting" }).click();
  resume();
  await tray.getByText("1 file added").waitFor();
  expect(await tray.getByText("Canceled. Nothing was stored.").count()).toBe(4);
  await page.context().unroute("**/v1/documents*");
  await tray.getByRole("button", { name: "Clear" }).click();

  await input.setInputFiles([...files(["6.txt"], "The ferry returns at "), ...files(["7.txt", "8.txt"], "")]);
  await tray.getByText("2 files could not be added · 1 file added").waitFor();
  expect(await failed.getByRole("listitem").count()).toBe(2);
  expect(await failed.getByText("This file contains no text.").count()).toBe(2);
  expect(await failed.getByRole("button").count()).toBe(0); // a retry would fail again
  await device.expectAccessible();
});
