/** An account that another tab has open cannot be removed from the device yet. */

import type { Page } from "playwright-core";
import { soon } from "../soon.ts";
import { Device, harness, withServer, composerOf } from "./app.ts";

withServer();

let device: Device;
beforeAll(async () => void (device = await Device.of(await harness.user())));

/** Store a fact, and open another tab that never leaves the account, because its navigation does not end. */
async function openStuckTab(): Promise<Page> {
  await device.call("addFact", "rent", "940 euros");
  await device.until(async () => (await harness.liveRows(device.user, "facts")).length === 1);
  const other = await device.open("/");
  await composerOf(other).waitFor();
  await other.route("**/sign-in", () => {});
  return other;
}

test("the forget receipt is shown although another tab is open", async () => {
  const other = await openStuckTab();
  const { page, user } = device;
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

test("signing out although another tab is open ends at the sign-in page", async () => {
  await openStuckTab();
  const { page } = device;
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
