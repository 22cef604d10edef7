/** Unsent text is kept as a draft and does not appear in other tabs. */

import type { Page } from "playwright-core";
import { Device, harness, withServer, composerOf } from "./app.ts";
import { drafts, push, session } from "./accounts.ts";

withServer();

const DELETED = "This chat was deleted, here or on another device.";
const KEPT = "Your unsent message is kept. It will appear in your next new chat.";

let device: Device;
let page: Page;
beforeAll(async () => {
  device = await Device.of(await harness.user());
  page = device.page;
  await device.untilSyncIs("live");
});

const go = (name: string) => page.getByRole("link", { name }).first().click();

/** Visit another page, open a new chat, and return the text in its composer. */
async function next(): Promise<string> {
  await go("Documents");
  await composerOf(page).waitFor({ state: "detached" });
  await go("New chat");
  return composerOf(page).inputValue();
}

test("the draft of a new chat is kept separately for each tab", async () => {
  await composerOf(page).fill("Half a question");
  expect(await next()).toBe("Half a question");
  await go("Documents");
  await page.reload();
  await go("New chat");
  expect(await composerOf(page).inputValue()).toBe("Half a question");

  const second = await device.open("/");
  expect(await composerOf(second).inputValue()).toBe("");
  await second.close();
  const opened = page.waitForEvent("popup");
  await page.evaluate(() => void window.open("/")); // with a copy of the session storage, as a duplicated tab
  const copy = await opened;
  expect(await composerOf(copy).inputValue()).toBe("");
  await composerOf(copy).fill("Another question");
  await copy.getByRole("link", { name: "Documents" }).first().click();
  await copy.reload();
  await copy.getByRole("link", { name: "New chat" }).first().click();
  expect(await composerOf(copy).inputValue()).toBe("Another question");
  await copy.close();

  expect(await next()).toBe("Half a question");
  await composerOf(page).press("Enter");
  await page.getByRole("article").first().waitFor();
  await composerOf(page).fill("And then?");
  expect(await next()).toBe("");
});

test("a deleted chat's draft moves to a new chat", async () => {
  await push(device.user, "sessions", session("gone", "Gone elsewhere"));
  await page.getByRole("link", { name: "Gone elsewhere" }).click();
  await composerOf(page).fill("Words of mine");
  const ownDrafts = async () => (await drafts(device)).filter(({ text }) => text === "Words of mine");
  const [before] = await ownDrafts();
  await harness.request(device.user, "/v1/sessions/gone", { method: "DELETE" });
  await page.getByText(DELETED).waitFor();
  await page.getByText(KEPT).waitFor();
  await page.getByRole("status").getByRole("link", { name: "New chat" }).click();
  expect(await composerOf(page).inputValue()).toBe("Words of mine");
  expect(page.url()).not.toContain("/s/gone"); // a message there would create the chat again
  const after = await ownDrafts();
  // The draft is moved and keeps its time, so that "forget everything" removes it.
  expect(after.map(({ at }) => at)).toEqual([before!.at]);
  expect(await next()).toBe("Words of mine");
  await composerOf(page).fill("");
  expect(await next()).toBe("");
});

test("a fact's draft survives leaving the page", async () => {
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const value = page.getByRole("textbox", { name: "Value" });
  await go("Memory");
  await button("Add fact").click();
  await page.getByRole("textbox", { name: "Name" }).fill("rent");
  await value.fill("940 euros");
  expect(await next()).toBe("");
  await go("Memory");
  expect(await value.inputValue()).toBe("940 euros");
  await button("Save").click();
  await button("Edit: rent").click();
  await value.fill("950 euros");
  await page.reload();
  await value.waitFor();
  expect(await value.inputValue()).toBe("950 euros");
  await button("Cancel").click();
  await button("Edit: rent").click();
  expect(await value.inputValue()).toBe("940 euros");
  await button("Cancel").click();
  await button("Edit: rent").click();
  await value.fill("960 euros");
  const { id } = (await device.rows("facts"))[0]!;
  await page.evaluate((id) => window.vademecum.changeFact(id, { value: "970 euros" }), id);
  await page.getByText("It now reads: rent: 970 euros").waitFor();
  await page.evaluate((id) => window.vademecum.deleteRow("facts", id), id);
  await value.waitFor({ state: "detached" });
  expect((await drafts(device)).filter((draft) => draft.id.startsWith("fact "))).toEqual([]);
  await button("Add fact").click();
  expect(await value.inputValue()).toBe("");
  await button("Cancel").click();
});

test("deleting a chat deletes its draft", async () => {
  await push(device.user, "sessions", session("mine", "Gone here"));
  await page.getByRole("link", { name: "Gone here" }).click();
  await composerOf(page).fill("Words of mine");
  await page.evaluate(() => window.vademecum.deleteSession("mine"));
  await page.getByText(DELETED).waitFor();
  expect(await page.getByText(KEPT).count()).toBe(0);
  expect(await next()).toBe("");
});
