/** A very long answer does not freeze the page, and an error while rendering affects only its answer or page. */

import { Device, withServer } from "./app.ts";
import { person, push, syncedDevice, withRows } from "./accounts.ts";
import { turn } from "./sample_memory.ts";

withServer();

const PARAGRAPH =
  "Some **bold** text with `code` and [a link](https://example.org) that goes on for a while, as answers do.\n\n";
const SECTION = `# Rents\n\n${PARAGRAPH.repeat(6)}- one\n- two\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n`;
const LONG = `${SECTION.repeat(200_000 / SECTION.length)}The *last* words.`;
const MARKDOWN = "The rent is **940 euros**, which breaks the renderer.";
let device: Device;

beforeAll(async () => {
  const ada = await person();
  await withRows(ada);
  await push(
    ada,
    "episodes",
    turn("e1", "s-lease", 1, "What is the rent?", MARKDOWN),
    turn("e2", "s-lease", 2, "And the deposit?", "It is **three rents**."),
    turn("e3", "s-pump", 1, "Which pumps are there?", LONG),
  );
  device = await syncedDevice(ada);
});

test("a long answer does not freeze the page", { timeout: 120_000 }, async () => {
  await device.page.evaluate(() => {
    const state = { beats: 0, longest: 0, isDrawn: false };
    let before = performance.now();
    const beat = () => {
      const now = performance.now();
      const answer = document.querySelector("article h1");
      const end = [...document.querySelectorAll("article em")].some((one) => one.textContent === "last");
      if (answer && !end) state.beats += 1;
      if (!state.isDrawn) state.longest = Math.max(state.longest, now - before);
      state.isDrawn ||= end;
      before = now;
      setTimeout(beat);
    };
    beat();
    (window as any).drawn = state;
  });
  await device.page.getByRole("link", { name: "Heat pump" }).first().click();
  await device.page.locator("em", { hasText: "last" }).waitFor();
  const drawn = await device.page.evaluate(() => (window as any).drawn);
  if (process.env["SOAK"]) console.log(LONG.length, drawn);
  expect(drawn.beats).toBeGreaterThan(5);
});

/** Make the rendering of MARKDOWN fail and, while `broken` is true, the formatting of plurals. */
async function breakRendering(): Promise<void> {
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
}

const alert = () => device.page.getByRole("alert").filter({ hasText: "This page cannot be displayed" });
const setBroken = (broken: boolean) =>
  device.page.evaluate((on) => void ((window as any).broken = on), broken);

test("an answer that fails to render is shown as plain text", async () => {
  await breakRendering();
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
