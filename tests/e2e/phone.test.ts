/** The app on a phone: touch targets, wrapping and the drawer. */

import type { Page } from "playwright-core";
import { Device, harness } from "./app.ts";
import { fact, push, session } from "./accounts.ts";
import { withAssistant } from "./scripted_assistant.ts";

const LONG = "How much notice do I have to give to the cooperative before I move out in the spring";
const ROW = (one: string) => `|${` ${one} |`.repeat(9)}`;
const TABLE = [ROW("Electricity"), ROW("---"), ROW("11,195"), ""].join("\n");

withAssistant([
  { when: "Another table", say: [TABLE], first_s: 1 }, // long enough for the page to show the pending answer
  { when: "table", say: [TABLE] },
]);

let device: Device;
let page: Page;
beforeAll(async () => {
  const user = await harness.user();
  await push(user, "sessions", session("s-long", LONG));
  await push(user, "facts", fact("f1", "a flat in Harbour Street"));
  device = await Device.of(user, { phone: true });
  page = device.page;
  page.setDefaultTimeout(60_000);
  await device.navigate("/s/s-long");
  await page.getByRole("heading", { name: LONG }).waitFor();
});

const menu = () => page.getByRole("button", { name: "Menu" });
const dots = () => page.getByRole("button", { name: `Rename, move or delete “${LONG}”` });

test("a long chat title leaves room for its menu button", async () => {
  await menu().tap();
  const clearance = await dots().evaluate((one) => {
    const right = (of: Element) => of.getBoundingClientRect().right;
    return Math.round(right(one.closest("nav")!) - right(one)); // relative, because both move with the drawer
  });
  expect(clearance).toBeGreaterThanOrEqual(0);
  await dots().tap();
  await page.getByRole("button", { name: "Rename", exact: true }).waitFor();
});

/** Return the controls that are smaller than a touch target, except links in text. */
function small(): Promise<string[]> {
  return page.evaluate(() => {
    const pressed = "button, input:not([type=file], [type=checkbox]), select, nav a";
    return [...document.querySelectorAll<HTMLElement>(pressed)]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }))
      .map((one) => ({ one, box: one.getBoundingClientRect() }))
      .filter(({ box }) => box.right > 0 && box.width > 1 && Math.min(box.width, box.height) < 43.5)
      .map(({ one, box }) => `${one.ariaLabel ?? one.textContent} ${box.width} × ${box.height}`);
  });
}

test("touch targets are large enough", async () => {
  await page.getByRole("button", { name: "Delete", exact: true }).waitFor(); // in the drawer
  expect(await small()).toEqual([]);
  await menu().tap();
  await device.drop(
    "lease of the flat in Harbour Street, as it was signed.txt",
    "The rent is 940 euros a month.",
  );
  await page.getByText("1 file added").waitFor();
  await page.getByRole("button", { name: /^Remove lease/u }).waitFor();
  expect(await small()).toEqual([]);
  await page.getByRole("button", { name: "Clear" }).tap();
  await device.navigate("/documents");
  await page.getByRole("button", { name: "Add files" }).waitFor();
  expect(await small()).toEqual([]);
  await device.navigate("/memory");
  await page.getByText("a flat in Harbour Street").waitFor();
  expect(await small()).toEqual([]);
  await device.navigate("/settings");
  await page.getByRole("button", { name: "Set password" }).waitFor();
  expect(await small()).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
});

test("numbers and button labels are not broken into two lines", async () => {
  await device.navigate("/s/s-long");
  await device.ask("Make a table of it");
  const lines = (what: Element) => {
    const range = document.createRange();
    range.selectNodeContents(what);
    return new Set([...range.getClientRects()].map(({ top }) => top)).size;
  };
  expect(await page.getByRole("cell", { name: "11,195" }).first().evaluate(lines)).toBe(1);
  expect(await page.getByRole("columnheader").first().evaluate(lines)).toBe(1);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
  await menu().tap();
  await page.getByRole("button", { name: "Delete", exact: true }).tap();
  const undo = page.getByRole("button", { name: "Undo" });
  expect(await undo.locator(".mantine-Button-label").evaluate(lines)).toBe(1);
  const cut = await undo.evaluate((one) => {
    const right = (of: Element) => of.getBoundingClientRect().right;
    return right(one.querySelector(".mantine-Button-label")!) - right(one);
  });
  expect(cut).toBeLessThan(0);
  await undo.tap();
});

test("the list of added files does not cover the next answer", async () => {
  await device.navigate("/s/s-long");
  await device.drop("inventory.txt", "Two chairs and a table stay in the flat.");
  await page.getByText("1 file added").waitFor();
  await device.ask("What stays?");
  await page.getByText("1 file added").waitFor({ state: "detached" });
  const source = page
    .getByRole("group", { name: "Read for this answer" })
    .last()
    .getByRole("button", { name: /^lease/u });
  const [cut, dots] = await source.evaluate((one) => {
    const name = one.querySelector(".mantine-Text-root")!;
    return [one.scrollWidth > one.clientWidth, name.scrollWidth > name.clientWidth];
  });
  expect([cut, dots]).toEqual([false, true]); // a long name is truncated with an ellipsis
});

test("the list of failed files does not cover the next answer", async () => {
  await device.navigate("/s/s-long");
  await device.drop("cat.jpg", Buffer.from([0xff, 0xd8, 0xff, 1, 2, 3]));
  await page.getByText("This type of file is not supported.").waitFor();
  await device.ask("Another table, please");
  await page.getByRole("button", { name: "Show files" }).waitFor();
  await page.getByText("1 file could not be added").waitFor();
  await page.getByRole("button", { name: "Show files" }).tap();
  await page.getByText("This type of file is not supported.").waitFor();
  await page.getByRole("button", { name: "Clear" }).tap();
});

test("Escape closes the drawer without leaving the page", async () => {
  await menu().tap();
  await page.locator("[aria-label=Menu][aria-expanded=true]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("[aria-label=Menu][aria-expanded=false]").waitFor();
  expect(page.url()).toContain("/s/s-long");
});

test("the app name is shown whole or not at all", async () => {
  const seen = () =>
    page.evaluate(() => {
      const range = document.createRange();
      range.selectNodeContents(document.querySelector("header h1")!);
      const name = range.getBoundingClientRect();
      const box = document.querySelector("header h1")!.parentElement!.getBoundingClientRect();
      const isCut = name.right > box.right + 1;
      return name.top >= box.bottom ? "not at all" : isCut ? "cut" : "whole";
    });
  const say = (what: string) =>
    page.locator("[data-status] span").evaluate((line, what) => (line.firstChild!.nodeValue = what), what);
  await say("Server busy");
  expect(await seen()).toBe("whole");
  await say("2 documents only on this device");
  expect(await seen()).toBe("not at all");
});
