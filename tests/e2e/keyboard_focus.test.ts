/** Keyboard users keep the focus near the element that they used. */

import type { Page } from "playwright-core";
import { soon } from "../soon.ts";
import { Device, harness } from "./app.ts";
import { push, session } from "./accounts.ts";
import { turn } from "./sample_memory.ts";
import { withAssistant } from "./scripted_assistant.ts";

withAssistant([
  { when: "slowly", say: ["On and on. "], pause_s: 0.1, ends: "never" },
  { when: "rent", say: ["940 euros."], first_s: 0.5 }, // long enough for the page to show the pending answer
]);

let device: Device;
let page: Page;
beforeAll(async () => {
  const user = await harness.user();
  await push(user, "sessions", session("s-rent", "The rent"), session("s-pump", "Heat pump"));
  await push(user, "episodes", turn("e1", "s-rent", 1, "What is the rent?", "900 euros."));
  device = await Device.of(user);
  page = device.page;
  page.setDefaultTimeout(60_000);
  await page.evaluate(() => history.pushState(null, "", "/s/s-rent"));
  await page.getByText("900 euros.").waitFor();
});

const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
const writing = () => page.getByRole("textbox", { name: "Ask about your documents" });

/** Return the tag and name of the focused element. */
const has = () =>
  page.evaluate(() => {
    const { tagName, ariaLabel, textContent } = document.activeElement!;
    const name = ariaLabel ?? (tagName === "BUTTON" ? textContent : "");
    return `${tagName} ${name}`.trim();
  });

const soonHas = (what: string) => soon(async () => expect(await has()).toBe(what));

test("a question can be edited and resent by keyboard", async () => {
  const edit = button("Edit and resend");
  await edit.press("Enter");
  await soonHas("TEXTAREA Edit and resend");
  await page.keyboard.press("Escape");
  await soonHas("BUTTON Edit and resend");
  await edit.press("Enter");
  await soonHas("TEXTAREA Edit and resend");
  await page.keyboard.press("End");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("Say it again.");
  await page.keyboard.press("Enter");
  await page.getByText("940 euros.").waitFor();
  const [question] = await device.rows("episodes");
  expect(question!.userMessage).toBe("What is the rent?\nSay it again.");
  expect(await has()).not.toBe("BODY");
});

test("the focus stays nearby when its button disappears", async () => {
  await button("Regenerate answer").press("Enter");
  await button("Regenerate answer").waitFor({ state: "detached" });
  expect(await has()).not.toBe("BODY");
  await button("Regenerate answer").waitFor();
  await writing().fill("Tell me slowly");
  await writing().press("Enter");
  await page.getByText("On and on.").waitFor();
  await button("Stop").press("Enter");
  await page.getByText("Stopped. The answer so far is kept.").waitFor();
  await soonHas("BUTTON Send");
  await device.drop("lease.txt", "The rent of the flat is 940 euros.");
  await button(/^Remove lease\.txt/u).press("Enter");
  await soonHas("DIV Documents in this chat");
  await page.getByRole("link", { name: "Heat pump" }).press("Delete");
  await soonHas("UL Chats");
  await button("Undo").press("Enter");
  await page.getByRole("link", { name: "Heat pump" }).waitFor();
  expect(await has()).not.toBe("BODY");
});

test("a button gets the focus back when its action is done", async () => {
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByLabel(/^New password/u).fill("a long enough password");
  await button("Set password").press("Enter");
  await page.getByText("Your password is set.").waitFor();
  await soonHas("BUTTON Set password");
  const download = page.waitForEvent("download");
  await button("Export everything").press("Enter");
  await download;
  await soonHas("BUTTON Export everything");
});

test("the skip link moves to content below the header", async () => {
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("heading", { name: "Settings" }).waitFor();
  await page.getByRole("link", { name: "Skip to content" }).press("Enter");
  await soonHas("MAIN");
  const [header, main] = await Promise.all(
    ["header", "main"].map((tag) => page.locator(tag).first().boundingBox()),
  );
  expect(main!.y).toBe(header!.y + header!.height);
});
