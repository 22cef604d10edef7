/** Everything around the conversations: places, finding, the line about sync, facts. */

import { strFromU8, strToU8, unzipSync, zipSync } from "fflate";
import type { Locator, Page } from "playwright-core";
import { t } from "../../web/src/locale/t.ts";
import type { Said } from "../../web/src/core/sync/syncStatus.ts";
import { harness, withServer } from "./app.ts";
import {
  block,
  fact,
  lease,
  onServer,
  person,
  push,
  session,
  Visit,
  withRows,
  type Person,
} from "./accounts.ts";

withServer();

let ada: Person;
let visit: Visit;

beforeAll(async () => {
  ada = await person();
  await withRows(ada);
  visit = await Visit.of(ada, { before: listen });
});

/** Notes all that the line about sync says, each with what is told beside it to who listens. */
async function listen(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const heard: [string, string][] = ((window as any).heard = []);
    const note = () => {
      const line = document.querySelector<HTMLElement>("[data-said]");
      if (line) heard.push([line.dataset["said"]!, line.nextElementSibling!.textContent]);
    };
    const attributeFilter = ["data-said"];
    new MutationObserver(note).observe(document, {
      ...{ subtree: true, childList: true, characterData: true, attributeFilter },
    });
  });
}

test("shortcuts open search and their own help", async () => {
  await visit.page.getByRole("link", { name: "Lease of the flat" }).waitFor();
  await visit.page.keyboard.press("Control+k");
  await visit.page.getByRole("textbox", { name: "Search chats" }).fill("pump heat");
  await visit.page.getByRole("button", { name: "Heat pump", exact: true }).last().waitFor();
  await visit.accessible();
  await visit.page.keyboard.press("Enter");
  await visit.page.waitForURL("**/s/s-pump");
  await visit.page.keyboard.press("Control+j");
  await visit.page.waitForURL("**/documents");
  await visit.page.keyboard.press("Shift+?");
  await visit.page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await visit.accessible();
  await visit.page.keyboard.press("Escape");
});

test("a chat is renamed, deleted and restored", async () => {
  const link = visit.page.getByRole("link", { name: "Heat pump" });
  await link.press("F2");
  await visit.page.getByRole("textbox", { name: "New title" }).fill("Heat pump offers");
  await visit.page.keyboard.press("Enter");
  await visit.device.until(
    async () => (await onServer(ada, "sessions", "s-pump"))?.["title"] === "Heat pump offers",
  );
  const renamed = visit.page.getByRole("link", { name: "Heat pump offers" });
  const { clock, mouse } = visit.page;
  await clock.install();
  await renamed.press("Delete");
  await renamed.waitFor({ state: "detached" });
  await visit.page.getByRole("button", { name: "Undo" }).hover(); // as long as it is there it undoes
  await clock.runFor(10_000);
  await visit.press("Undo");
  await renamed.press("Delete");
  await renamed.waitFor({ state: "detached" });
  await mouse.move(0, 0);
  await clock.runFor(10_000);
  await visit.device.until(async () => (await onServer(ada, "sessions", "s-pump"))?.["_deleted"] === true);
  expect(await visit.device.rows("sessions")).toHaveLength(1);
});

test("closing an overlay returns the focus", async () => {
  const { page } = visit;
  await page.evaluate(() => history.pushState(null, "", "/s/s-lease"));
  const box = page.getByRole("textbox", { name: "Ask about your documents" });
  const dots = page.getByRole("button", { name: "Rename, move or delete “Lease of the flat”" });
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const title = page.getByRole("textbox", { name: "New title" });
  const find = page.getByRole("textbox", { name: "Search chats" });
  await box.focus();
  await page.keyboard.press("Control+k");
  await closed(find, box);
  await button("Search").press("Enter");
  await closed(find, button("Search"));
  await visit.line().press("Enter");
  await closed(page.getByRole("dialog", { name: "Sync" }), visit.line());
  await page.getByRole("link", { name: "Lease of the flat" }).press("F2");
  await closed(title, page.getByRole("link", { name: "Lease of the flat" }));
  await dots.press("Enter");
  await button("Rename").press("Enter");
  await closed(title, dots); // what opened it is gone, and this had the focus before that
  await button("Add a document").press("Enter");
  await closed(page.getByRole("menu"), button("Add a document"));
  await visit.goTo("Settings");
  await button("Sign out").press("Enter");
  await closed(page.getByRole("dialog"), button("Sign out"));
});

/** By Escape, once it has the focus itself. */
async function closed(sheet: Locator, opener: Locator): Promise<void> {
  await sheet.waitFor();
  const has = (one: Locator) =>
    one.evaluate((element) => element !== document.body && element.contains(document.activeElement));
  await expect.poll(() => has(sheet)).toBe(true);
  await visit.page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  await expect.poll(() => has(opener)).toBe(true);
}

test("a replaced edit is kept and restored", async () => {
  await visit.device.offline(true);
  await visit.ask("changeFact", "f2", { value: "the laptop's words" });
  await push(ada, "facts", fact("f3", "another"));
  const stored = await onServer(ada, "facts", "f2");
  const body = JSON.stringify([
    { newDocumentState: { ...stored, value: "the phone's words" }, assumedMasterState: stored },
  ]);
  await harness.call(ada, "/v1/sync/facts/0/push", { method: "POST", body });
  await visit.device.offline(false);
  await visit.ask("syncNow");
  await visit.said("lost");
  expect(await visit.values()).toContain("the phone's words");
  const zip = await visit.page.evaluate(async () => {
    const taken: Blob = await (window as any).vademecum.exportAccount();
    return [...new Uint8Array(await taken.arrayBuffer())];
  });
  expect(strFromU8(unzipSync(new Uint8Array(zip))["lost.jsonl"]!)).toContain("the laptop's words");
  await visit.line().click();
  await visit.page.getByText("the laptop's words").waitFor();
  await visit.page.getByText("Your version of “about.f2” was replaced").waitFor(); // and not only that it was a fact
  await visit.accessible();
  await visit.press("Restore my version");
  await visit.device.until(
    async () => (await onServer(ada, "facts", "f2"))?.["value"] === "the laptop's words",
  );
  await visit.page.keyboard.press("Escape");
  await visit.said("synced");
});

test("an offline question to a deleted chat is kept", async () => {
  const train = await Visit.of(ada, { installs: true });
  await train.device.installed();
  await push(ada, "sessions", session("s-cold", "Cold rooms"));
  await train.page.getByRole("link", { name: "Cold rooms" }).click();
  await train.page.waitForURL("**/s/s-cold");
  await train.device.offline(true);
  await train.device.ask("Why was the heating cold in May?");
  await train.device.until(async () => (await train.device.rows("episodes")).length === 1);
  await push(ada, "sessions", { ...(await onServer(ada, "sessions", "s-cold")), _deleted: true });
  await train.device.offline(false);
  await train.ask("syncNow");
  await train.said("lost");
  expect(await train.device.rows("episodes")).toEqual([]);
  await train.line().click();
  const told = t("sync.replacedQuestion", { name: "Why was the heating cold in May?" });
  await train.page.getByText(told).waitFor();
  expect(await train.page.getByRole("button", { name: "Restore my version" }).count()).toBe(0); // there is no row for it
  await train.page.getByRole("button", { name: "Copy" }).last().waitFor();
  await train.accessible();
  await train.press("Dismiss");
  await train.page.getByText(told).waitFor({ state: "detached" });
  await train.page.keyboard.press("Escape");
  await train.said("synced");
});

test("a rejected row shows its reason and retries", async () => {
  await push(ada, "sessions", session("s-taken", "Taken", { externalId: "x" }));
  const line = JSON.stringify(session("s-refused", "Refused", { externalId: "x" }));
  await visit.bringIn(zipSync({ "sessions.jsonl": strToU8(`${line}\n`) }));
  await visit.said("refused");
  await visit.line().click();
  await visit.page.getByText("Refused", { exact: true }).last().waitFor();
  const dialog = visit.page.getByRole("dialog", { name: "Sync" });
  await dialog.getByText("a chat with the same ID").waitFor();
  expect(await dialog.innerText()).not.toContain("externalId");
  expect((await visit.device.rows("sessions", { selector: { id: "s-refused" } }))[0]?.syncError?.code).toBe(
    "DUPLICATE",
  );
  await visit.accessible();
  await harness.call(ada, "/v1/sessions/s-taken", { method: "DELETE" });
  await visit.press("Retry");
  await visit.device.until(async () => (await onServer(ada, "sessions", "s-refused")) !== undefined);
  await visit.page.keyboard.press("Escape");
  await visit.said("synced");
});

test("announcements match the sync status", async () => {
  const heard = await visit.page.evaluate(() => (window as any).heard as [Said, string][]);
  expect(heard.filter(([said, told]) => told && told !== t(`sync.detail.${said}`))).toEqual([]);
  const told = new Set(heard.filter(([, told]) => told).map(([said]) => said));
  expect([...told]).toEqual(expect.arrayContaining(["starting", "synced", "lost", "refused"]));
});

test("a fact is confirmed and edited", async () => {
  await visit.goTo("Memory");
  await visit.press("Confirm: about.f1");
  await visit.press("Edit: about.f2");
  await visit.page.getByLabel("Value").fill("edited by hand");
  await visit.press("Save");
  await visit.device.until(async () => {
    const [one, two] = await Promise.all(["f1", "f2"].map((id) => onServer(ada, "facts", id)));
    return one?.["confirmed"] === true && two?.["value"] === "edited by hand";
  });
  await visit.accessible();
});

test("a very long fact is collapsed", async () => {
  const end = "and this is how it ends";
  await push(ada, "facts", fact("f4", `${"a word ".repeat(40_000)}${end}`));
  const row = visit.page.getByRole("listitem").filter({ hasText: "about.f4" });
  await row.waitFor();
  expect((await row.boundingBox())!.height).toBeLessThan(800);
  await row.getByRole("button", { name: "Show all 280,023 characters" }).click();
  await row.getByText(end).waitFor();
  await row.getByRole("button", { name: "Show less" }).click();
  expect((await row.boundingBox())!.height).toBeLessThan(800);
});

test("a chat deleted elsewhere accepts no message", async () => {
  const { page } = visit;
  await push(ada, "sessions", session("s-gone", "Soon gone"));
  await page.getByRole("link", { name: "Soon gone" }).click();
  const box = page.getByRole("textbox", { name: "Ask about your documents" });
  await box.waitFor();
  await push(ada, "sessions", { ...session("s-gone", "Soon gone"), _deleted: true });
  await page.getByText("This chat was deleted, here or on another device.").waitFor();
  expect(await box.count()).toBe(0);
  await visit.accessible();
  await page.getByRole("log").getByRole("link", { name: "New chat" }).click();
  await box.waitFor();
  expect(page.url()).not.toContain("s-gone");
});

test("large text fits a small screen", async () => {
  const filename = "Lease of the flat in Harbour Street, with all that was agreed later.pdf";
  await push(ada, "documents", { ...lease(ada.userId, "d-long"), activeSessions: ["s-lease"], filename });
  await push(ada, "vectorEmbeddings", block("d-long"));
  await visit.device.until(async () => (await visit.device.rows("documents")).length === 2);
  await visit.page.setViewportSize({ width: 360, height: 740 });
  await letters(32);
  for (const [place, button] of [
    ["Memory", "Forget everything"],
    ["Settings", "Set password"],
  ] as const) {
    await visit.press("Menu");
    await visit.goTo(place);
    await visit.page.getByRole("button", { name: button }).waitFor();
    expect(await tooWide(), place).toEqual([]);
  }
  await visit.press("Menu");
  expect(await visit.page.getByRole("button", { name: "Search", exact: true }).isVisible()).toBe(true);
  expect(await tooWide(), "Menu").toEqual([]);
  await visit.goTo("Lease of the flat");
  const box = visit.page.getByRole("textbox", { name: "Ask about your documents" });
  expect((await box.boundingBox())!.width).toBeGreaterThan(250);
  await visit.page.getByText("Documents only", { exact: true }).waitFor();
  await visit.press("2 documents");
  await visit.page.getByRole("button", { name: `Remove ${filename} from this chat` }).waitFor();
  expect(await tooWide(), "a conversation").toEqual([]);
  await visit.press("2 documents");
  const [top, bottom] = await visit.page.evaluate(() => {
    const [head, composer] = ["header", "section:has(textarea)"].map((one) =>
      document.querySelector(one)!.getBoundingClientRect(),
    );
    return [head!.bottom, [composer!.top, composer!.bottom]] as const;
  });
  expect(bottom[1], "where one writes is in view").toBeLessThanOrEqual(740);
  expect(bottom[0] - top, "and there is room to read above it").toBeGreaterThan(300);
});

test("the sync status fits 320 pixels", async () => {
  await visit.page.setViewportSize({ width: 320, height: 640 });
  await letters(16);
  await visit.said("synced");
  const words = visit.line().locator("span").first();
  const lacking = await words.evaluate((element) => {
    const whole = element.parentElement!.appendChild(element.cloneNode(true) as HTMLElement);
    Object.assign(whole.style, { position: "absolute", width: "max-content" });
    const lacks = whole.getBoundingClientRect().width - element.getBoundingClientRect().width;
    whole.remove();
    return lacks;
  });
  expect(lacking).toBe(0); // a thirtieth of a pixel cuts letters off
});

/** So large the person wants letters, as they set it in the browser. */
async function letters(standard: number): Promise<void> {
  const session = await visit.page.context().newCDPSession(visit.page);
  await session.send("Page.setFontSizes", { fontSizes: { standard } });
  await visit.page.waitForFunction(
    (standard) => getComputedStyle(document.documentElement).fontSize === `${standard}px`,
    standard,
  );
}

/** What of the page asks for more width than there is: buttons with cut-off words, and the page itself. */
const tooWide = () =>
  visit.page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("html, .mantine-Button-label")]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map(({ tagName, textContent }) => (tagName === "HTML" ? "the page" : textContent)),
  );
