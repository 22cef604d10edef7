/** The receipt of "Forget everything" is kept until the user has read it. */

import { Device, harness, withServer } from "./app.ts";

withServer();

test("the forget receipt is kept until the user closes it", async () => {
  const device = await prepared();
  const { page, user } = device;
  const [receipt, erasing] = [
    page.getByRole("dialog", { name: "Everything has been erased" }),
    page.getByText("Erasing and verifying…"),
  ];
  const goTo = (name: string) => page.getByRole("link", { name, exact: true }).first().click();
  let goOn = () => {};
  const held = new Promise<void>((resolve) => (goOn = resolve));
  await page.route("**/v1/forget", async (route) => {
    await held;
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
  goOn();
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

test("forgotten data is hidden before its deletion has synced", async () => {
  const { page } = await prepared();
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
});

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
