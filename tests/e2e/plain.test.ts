/** What people read: quotations without the marks that a document was written with. */

import type { Page } from "playwright-core";
import { Device, harness } from "./app.ts";
import { withAssistant } from "./scripted.ts";

withAssistant([{ when: "How high", say: ["**Sixteen** metres [1]."] }]);

const TIDES =
  "# About the tides\n\n**Neap tides** are the `low_*` ones.\n\n| where | metres |\n|---|---|\n| Fundy | 16 |\n";
const READ = "About the tides\n\nNeap tides are the low_* ones.\n\nwhere · metres\nFundy · 16";
const MARKS = /[#|]|\*\*|---/u;

let device: Device;
let page: Page;
beforeAll(async () => {
  device = await Device.of(await harness.user());
  page = device.page;
  page.setDefaultTimeout(30_000);
});

const go = (path: string) => page.evaluate((path) => history.pushState(null, "", path), path);

test("a document is quoted, shown and told of without the marks of Markdown, wherever that is", async () => {
  await device.drop("tides.md", TIDES);
  await device.embedded(1);
  const [document] = await device.rows("documents");
  await device.ask("How high are they?");
  await page.getByText("Sixteen metres").waitFor();
  await page.getByRole("button", { name: "What the assistant was told" }).click();
  const told = page.getByRole("dialog").locator("blockquote");
  await told.getByText("Neap tides are").waitFor();
  expect(await told.innerText()).not.toMatch(MARKS);
  await page.getByRole("button", { name: "Close", exact: true }).click();

  await device.offline(true);
  await device.ask("What are neap tides?");
  const quote = page.getByRole("article").locator("blockquote");
  await quote.getByText("Neap tides are the low_* ones.").waitFor();
  expect(await quote.innerText()).not.toMatch(MARKS);
  await device.offline(false);
  await device.until(async () => (await device.state()).sync.kind === "live");
  await quote.getByRole("button", { name: "tides.md" }).click();
  const beside = page.getByRole("dialog", { name: "tides.md" });
  expect((await beside.locator("mark").innerText()).trim()).toBe(READ);
  await beside.getByRole("button", { name: "Close the passage" }).click();

  await go(`/documents/${document!.id}`);
  const text = page.getByRole("region", { name: "Text" });
  await text.getByText("Neap tides are").waitFor();
  expect((await text.innerText()).trim()).toBe(READ);

  await go("/memory/timeline");
  const turns = page.getByRole("main").getByRole("listitem");
  await turns.getByText("Sixteen metres.").waitFor();
  expect((await turns.allInnerTexts()).join("\n")).not.toMatch(/[#|>\\]|\*\*|\[1\]/u);
});
