/** A lazily loaded part of the app that fails to load is reported, and loads after a reload of the page. */

import { Device, harness, withServer } from "./app.ts";

withServer();

/** All tests use this device. The missing files are available again after each test. */
let device: Device;
beforeAll(async () => void (device = await Device.of(await harness.user())));
afterEach(() => context().unrouteAll());

const context = () => device.page.context();
const lose = (...paths: string[]) =>
  Promise.all(paths.map((path) => context().route(path, (route) => route.abort())));
const find = (...paths: string[]) => Promise.all(paths.map((path) => context().unroute(path)));
const notice = () =>
  device.page.getByRole("alert").filter({ hasText: "Part of this page could not be loaded" });
const loadAgain = () => notice().getByRole("button", { name: "Reload" });
const question = () => device.composer;
const words = () =>
  device.page.getByRole("textbox", { name: "Search chats, documents, memories and commands" });

test("a page whose code is missing can be reloaded and keeps the draft", async () => {
  const blockedUrls = ["**/assets/Documents-*.js", "**/health"];
  await lose(...blockedUrls);
  await question().fill("How much is the rent?");
  const { page } = device;
  const conversation = page.url();
  await page.getByRole("link", { name: "Documents" }).click();
  await loadAgain().click();
  await notice().getByText("The server is not responding.").waitFor();
  await find(...blockedUrls);
  await loadAgain().click();
  await page.getByRole("heading", { name: "Documents", exact: true }).waitFor();
  expect(await notice().count()).toBe(0);
  await page.goto(conversation);
  expect(await question().inputValue()).toBe("How much is the rent?");
});

test("a missing part of the app hides no other part", async () => {
  await lose("**/assets/DropZone-*.js");
  let resume!: () => void;
  const late = new Promise<void>((resolve) => (resume = resolve));
  await context().route("**/assets/Notices-*.js", (route) => late.then(() => route.abort()));
  await device.reopen();
  await notice().getByRole("button", { name: "Later" }).click();
  const failed = device.page.waitForEvent("requestfailed");
  resume();
  await failed;
  await device.page.waitForTimeout(500); // time for a second notice to appear
  expect(await notice().count()).toBe(0);
  await device.page.getByRole("button", { name: "Search" }).click();
  await words().waitFor();
});

test("an answer is shown as text if its renderer cannot be loaded", async () => {
  await lose("**/assets/Answer-*.js");
  await device.reopen();
  await device.drop("lease.txt", "The rent of the flat is 940 euros a month.");
  await device.embedded(1);
  await device.ask("How much is the rent?");
  await loadAgain().waitFor();
  await device.page.getByText("The rent of the flat is 940 euros a month.").first().waitFor();
});

test("a part of the app missing in the worker is reported", async () => {
  const blockedUrls = ["**/assets/documentSearch-*.js", "**/assets/exportAccount-*.js"];
  await lose(...blockedUrls);
  await device.reopen(); // this loads the search
  await notice().getByRole("button", { name: "Later" }).click();
  const { page } = device;
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("button", { name: "Export everything" }).click();
  await page
    .getByText("The part of the app needed for this could not be loaded. Nothing was changed")
    .waitFor();
  await find(...blockedUrls);
  await loadAgain().click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Export everything" }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/^vademecum-export-.*\.zip$/u);
});
