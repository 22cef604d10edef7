/** An error while rendering affects only the answer or the page. */

import { Device, withServer } from "./app.ts";
import { person, push, syncedDevice, withRows } from "./accounts.ts";
import { turn } from "./sample_memory.ts";

withServer();

const MARKDOWN = "The rent is **940 euros**, which breaks the renderer.";
let device: Device;

/** Make the rendering of MARKDOWN fail and, while `broken` is true, the formatting of plurals. */
beforeAll(async () => {
  const ada = await person();
  await withRows(ada);
  await push(ada, "episodes", turn("e1", "s-lease", 1, "What is the rent?", MARKDOWN));
  await push(ada, "episodes", turn("e2", "s-lease", 2, "And the deposit?", "It is **three rents**."));
  device = await syncedDevice(ada);
  await device.page.evaluate(() => {
    const { test } = RegExp.prototype;
    RegExp.prototype.test = function (text) {
      if (String(text).includes("breaks the renderer")) throw new Error("Cannot render.");
      return test.call(this, text);
    };
    const { select } = Intl.PluralRules.prototype;
    Intl.PluralRules.prototype.select = function (n: number) {
      if ((window as any).broken) throw new Error("Cannot count.");
      return select.call(this, n);
    };
  });
});

const alert = () => device.page.getByRole("alert").filter({ hasText: "This page cannot be displayed" });
const setBroken = (broken: boolean) =>
  device.page.evaluate((on) => void ((window as any).broken = on), broken);

test("an answer that fails to render is shown as plain text", async () => {
  await device.clickLink("Lease of the flat");
  await device.page.locator("strong", { hasText: "three rents" }).waitFor();
  await device.page.getByText(MARKDOWN).waitFor();
  await device.page.getByText("What is the rent?").waitFor();
  await device.composer.waitFor();
  expect(await alert().count()).toBe(0);
});

test("a page that fails to render shows an error", async () => {
  await setBroken(true);
  await device.clickLink("Documents");
  await alert().waitFor();
  await device.expectAccessible();
  await setBroken(false);
  await device.clickLink("Settings");
  await device.page.getByRole("heading", { name: "Settings" }).first().waitFor();
  expect(await alert().count()).toBe(0);
  await device.clickLink("Documents");
  await device.page.getByText("lease.txt").first().waitFor();
});
