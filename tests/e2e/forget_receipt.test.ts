/** The receipt of "Forget everything", also while another tab has the account open, and signing out meanwhile. */

import type { Page } from "playwright-core";
import { soon } from "../soon.ts";
import { Device, harness, withServer, composerOf } from "./app.ts";

withServer();

let device: Device;
beforeAll(async () => void (device = await prepared()));

/** Return a device with a document and a fact, on the memory page. */
async function prepared(): Promise<Device> {
  const device = await Device.of(await harness.user());
  await device.drop("lease.txt", "The rent is 940 euros.");
  await device.embedded(1);
  await device.call("addFact", "rent", "940 euros");
  await device.until(async () => (await harness.liveRows(device.user, "facts")).length === 1);
  await device.page.goto(`${harness.url}/memory`);
  await device.untilSyncIs("live");
  return device;
}

/** Open another tab that never leaves the account, because its navigation does not end. */
async function openStuckTab(device: Device): Promise<Page> {
  const other = await device.open("/");
  await composerOf(other).waitFor();
  await other.route("**/sign-in", () => {});
  return other;
}

test("forgotten data is hidden before its deletion has synced", async () => {
  const other = await prepared();
  const { page } = other;
  const places = page.locator("nav");
  await places.getByText("1 / 100").waitFor();
  await page.getByLabel("To confirm, type: forget everything").fill("forget everything");
  // The receipt arrives before the deletions are synced.
  const receipt = { rows: 2, files: 1, bytes: 9, at: new Date().toISOString(), checked: 9, leftovers: 0 };
  await page.context().route("**/v1/forget", (route) => route.fulfill({ json: receipt }));
  await page.getByRole("button", { name: "Forget everything" }).click();
  await page.getByRole("dialog", { name: "Everything has been erased" }).waitFor();
  await places.getByText("0 / 100").waitFor({ timeout: 5_000 });
  expect(await places.locator("li").count()).toBe(0);
  await other.stop();
});

test("the forget receipt is kept until the user closes it", async () => {
  const { page, user } = device;
  const [receipt, erasing] = [
    page.getByRole("dialog", { name: "Everything has been erased" }),
    page.getByText("Erasing and verifying…"),
  ];
  const goTo = (name: string) => page.getByRole("link", { name, exact: true }).first().click();
  let resume = () => {};
  const resumed = new Promise<void>((resolve) => (resume = resolve));
  await page.route("**/v1/forget", async (route) => {
    await resumed;
    await route.fallback();
  });
  await page.getByLabel("To confirm, type: forget everything").fill("forget everything");
  await page.getByRole("button", { name: "Forget everything" }).click();
  await erasing.waitFor();
  await goTo("Settings");
  await goTo("Memory");
  await erasing.waitFor();
  await goTo("Settings");
  await erasing.waitFor({ state: "detached" });
  resume();
  await receipt.getByText(/Erased [1-9]\d* entr(?:y|ies) .* nothing is left on the server/u).waitFor();
  expect(await device.rows("facts")).toEqual([]);
  await device.reload();
  await receipt.getByText("Nothing is left on this device.").waitFor();
  await receipt.getByRole("button", { name: "Close" }).click();
  await receipt.waitFor({ state: "detached" });
  await device.reload();
  await page.getByLabel("To confirm, type: forget everything").waitFor();
  expect(await receipt.count()).toBe(0);
  expect(await harness.liveRows(user, "facts")).toEqual([]);
});

// The next two tests run at the same time, because each waits ten seconds for the other tab.
test.concurrent("the forget receipt is shown although another tab is open", async () => {
  const { page, user } = device;
  await device.call("addFact", "rent", "940 euros");
  await device.until(async () => (await harness.liveRows(user, "facts")).length === 1);
  const other = await openStuckTab(device);
  await page.goto(`${harness.url}/memory`);
  await page.getByLabel("To confirm, type: forget everything").fill("forget everything");
  await page.getByRole("button", { name: "Forget everything" }).click();
  const receipt = page.getByRole("dialog", { name: "Everything has been erased" });
  await receipt.getByText(/Erased [1-9]\d* entr(?:y|ies) .* nothing is left on the server/u).waitFor();
  expect(await receipt.textContent()).toContain("Some data is still on this device because another tab");
  await other.close();
  await page.getByRole("button", { name: "Start over" }).click();
  await composerOf(page).waitFor();
  await soon(async () => expect(await device.rows("facts")).toEqual([]));
  expect(await harness.liveRows(user, "facts")).toEqual([]);
});

test.concurrent("signing out although another tab is open ends at the sign-in page", async () => {
  const leaving = await prepared();
  await openStuckTab(leaving);
  const { page } = leaving;
  await page.goto(`${harness.url}/settings`);
  await page.getByRole("button", { name: "Sign out" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("radio", { name: "Delete the data on this device" }).check();
  await dialog.getByRole("button", { name: "Sign out" }).click();
  await dialog.getByText("Another tab of this browser still has this account open.").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).last().click();
  await page.waitForURL("**/sign-in");
  await page.getByRole("button", { name: "Sign in" }).waitFor();
});
