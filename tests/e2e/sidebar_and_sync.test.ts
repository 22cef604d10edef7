/** Search, shortcuts, the sidebar, the sync status and facts. */

import { strFromU8, strToU8, unzipSync, zipSync } from "fflate";
import type { Locator, Page } from "playwright-core";
import { t } from "../../web/src/locale/t.ts";
import type { SyncStatus } from "../../web/src/core/sync/syncStatus.ts";
import { Device, harness, withServer } from "./app.ts";
import {
  block,
  fact,
  factValues,
  importZip,
  lease,
  onServer,
  person,
  push,
  session,
  syncedDevice,
  withRows,
  type Person,
} from "./accounts.ts";

withServer();

let ada: Person;
let device: Device;

beforeAll(async () => {
  ada = await person();
  await withRows(ada);
  device = await syncedDevice(ada, { beforeOpen: recordAnnouncements });
});

/** Record each sync status with its announcement for screen readers. */
async function recordAnnouncements(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const announced: [string, string][] = ((window as any).announced = []);
    const record = () => {
      const line = document.querySelector<HTMLElement>("[data-status]");
      if (line) announced.push([line.dataset["status"]!, line.nextElementSibling!.textContent]);
    };
    const attributeFilter = ["data-status"];
    new MutationObserver(record).observe(document, {
      ...{ subtree: true, childList: true, characterData: true, attributeFilter },
    });
  });
}

test("keyboard shortcuts open the search and the list of shortcuts", async () => {
  await device.page.getByRole("link", { name: "Lease of the flat" }).waitFor();
  await device.page.keyboard.press("Control+k");
  await device.page.getByRole("textbox", { name: "Search chats" }).fill("pump heat");
  await device.page.getByRole("button", { name: "Heat pump", exact: true }).last().waitFor();
  await device.expectAccessible();
  await device.page.keyboard.press("Enter");
  await device.page.waitForURL("**/s/s-pump");
  await device.page.keyboard.press("Control+j");
  await device.page.waitForURL("**/documents");
  await device.page.keyboard.press("Shift+?");
  await device.page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await device.expectAccessible();
  await device.page.keyboard.press("Escape");
});

test("a chat is renamed, deleted and restored", async () => {
  const link = device.page.getByRole("link", { name: "Heat pump" });
  await link.press("F2");
  await device.page.getByRole("textbox", { name: "New title" }).fill("Heat pump offers");
  await device.page.keyboard.press("Enter");
  await device.until(
    async () => (await onServer(ada, "sessions", "s-pump"))?.["title"] === "Heat pump offers",
  );
  const renamed = device.page.getByRole("link", { name: "Heat pump offers" });
  const { clock, mouse } = device.page;
  await clock.install();
  await renamed.press("Delete");
  await renamed.waitFor({ state: "detached" });
  await device.page.getByRole("button", { name: "Undo" }).hover(); // the notice stays open under a pointer
  await clock.runFor(10_000);
  await device.clickButton("Undo");
  await renamed.press("Delete");
  await renamed.waitFor({ state: "detached" });
  await mouse.move(0, 0);
  await clock.runFor(10_000);
  await device.until(async () => (await onServer(ada, "sessions", "s-pump"))?.["_deleted"] === true);
  expect(await device.rows("sessions")).toHaveLength(1);
});

test("closing an overlay returns the focus to its opener", async () => {
  const { page } = device;
  await page.evaluate(() => history.pushState(null, "", "/s/s-lease"));
  const composer = device.composer;
  const dots = page.getByRole("button", { name: "Rename, move or delete “Lease of the flat”" });
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const title = page.getByRole("textbox", { name: "New title" });
  const find = page.getByRole("textbox", { name: "Search chats" });
  await composer.focus();
  await page.keyboard.press("Control+k");
  await expectCloses(find, composer);
  await button("Search").press("Enter");
  await expectCloses(find, button("Search"));
  await device.statusLine.press("Enter");
  await expectCloses(page.getByRole("dialog", { name: "Sync" }), device.statusLine);
  await page.getByRole("link", { name: "Lease of the flat" }).press("F2");
  await expectCloses(title, page.getByRole("link", { name: "Lease of the flat" }));
  await dots.press("Enter");
  await button("Rename").press("Enter");
  await expectCloses(title, dots); // the menu item that opened it is gone, so focus returns to the menu's button
  await button("Add a document").press("Enter");
  await expectCloses(page.getByRole("menu"), button("Add a document"));
  await device.clickLink("Settings");
  await button("Sign out").press("Enter");
  await expectCloses(page.getByRole("dialog"), button("Sign out"));
});

/** Close an overlay by Escape once it has the focus, and expect the focus on its opener. */
async function expectCloses(sheet: Locator, opener: Locator): Promise<void> {
  await sheet.waitFor();
  const has = (one: Locator) =>
    one.evaluate((element) => element !== document.body && element.contains(document.activeElement));
  await expect.poll(() => has(sheet)).toBe(true);
  await device.page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  await expect.poll(() => has(opener)).toBe(true);
}

test("an edit replaced by another device's edit can be restored", async () => {
  await device.setOffline(true);
  await device.call("changeFact", "f2", { value: "the laptop's words" });
  await push(ada, "facts", fact("f3", "another"));
  const stored = await onServer(ada, "facts", "f2");
  const body = JSON.stringify([
    { newDocumentState: { ...stored, value: "the phone's words" }, assumedMasterState: stored },
  ]);
  await harness.request(ada, "/v1/sync/facts/0/push", { method: "POST", body });
  await device.setOffline(false);
  await device.call("syncNow");
  await device.untilStatusIs("lost");
  expect(await factValues(device)).toContain("the phone's words");
  const zip = await device.page.evaluate(async () => {
    const zip: Blob = await (window as any).vademecum.exportAccount();
    return [...new Uint8Array(await zip.arrayBuffer())];
  });
  expect(strFromU8(unzipSync(new Uint8Array(zip))["lost.jsonl"]!)).toContain("the laptop's words");
  await device.statusLine.click();
  await device.page.getByText("the laptop's words").waitFor();
  await device.page.getByText("replaced your version of “about.f2”").waitFor();
  await device.expectAccessible();
  await device.clickButton("Restore my version");
  await device.until(async () => (await onServer(ada, "facts", "f2"))?.["value"] === "the laptop's words");
  await device.page.keyboard.press("Escape");
  await device.untilStatusIs("synced");
});

test("a question asked offline in a deleted chat is kept", async () => {
  const train = await syncedDevice(ada, { installs: true });
  await train.installed();
  await push(ada, "sessions", session("s-cold", "Cold rooms"));
  await train.page.getByRole("link", { name: "Cold rooms" }).click();
  await train.page.waitForURL("**/s/s-cold");
  await train.setOffline(true);
  await train.ask("Why was the heating cold in May?");
  await train.until(async () => (await train.rows("episodes")).length === 1);
  await push(ada, "sessions", { ...(await onServer(ada, "sessions", "s-cold")), _deleted: true });
  await train.setOffline(false);
  await train.call("syncNow");
  await train.untilStatusIs("lost");
  expect(await train.rows("episodes")).toEqual([]);
  await train.statusLine.click();
  const explanation = t("sync.replacedQuestion", { name: "Why was the heating cold in May?" });
  await train.page.getByText(explanation).waitFor();
  expect(await train.page.getByRole("button", { name: "Restore my version" }).count()).toBe(0); // its row is gone
  await train.page.getByRole("button", { name: "Copy" }).last().waitFor();
  await train.expectAccessible();
  await train.clickButton("Dismiss");
  await train.page.getByText(explanation).waitFor({ state: "detached" });
  await train.page.keyboard.press("Escape");
  await train.untilStatusIs("synced");
});

test("a rejected row shows its reason and can be retried", async () => {
  await push(ada, "sessions", session("s-taken", "Taken", { externalId: "x" }));
  const line = JSON.stringify(session("s-refused", "Refused", { externalId: "x" }));
  await importZip(device, zipSync({ "sessions.jsonl": strToU8(`${line}\n`) }));
  await device.untilStatusIs("refused");
  await device.statusLine.click();
  await device.page.getByText("Refused", { exact: true }).last().waitFor();
  const dialog = device.page.getByRole("dialog", { name: "Sync" });
  await dialog.getByText("a chat with the same ID").waitFor();
  expect(await dialog.innerText()).not.toContain("externalId");
  expect((await device.rows("sessions", { selector: { id: "s-refused" } }))[0]?.syncError?.code).toBe(
    "DUPLICATE",
  );
  await device.expectAccessible();
  await harness.request(ada, "/v1/sessions/s-taken", { method: "DELETE" });
  await device.clickButton("Retry");
  await device.until(async () => (await onServer(ada, "sessions", "s-refused")) !== undefined);
  await device.page.keyboard.press("Escape");
  await device.untilStatusIs("synced");
});

test("announcements match the sync status", async () => {
  const announced = await device.page.evaluate(() => (window as any).announced as [SyncStatus, string][]);
  expect(announced.filter(([status, text]) => text && text !== t(`sync.detail.${status}`))).toEqual([]);
  const statuses = new Set(announced.filter(([, text]) => text).map(([status]) => status));
  expect([...statuses]).toEqual(expect.arrayContaining(["starting", "synced", "lost", "refused"]));
});

test("a fact is confirmed and edited", async () => {
  await device.clickLink("Memory");
  await device.clickButton("Confirm: about.f1");
  await device.clickButton("Edit: about.f2");
  await device.page.getByLabel("Value").fill("edited by hand");
  await device.clickButton("Save");
  await device.until(async () => {
    const [one, two] = await Promise.all(["f1", "f2"].map((id) => onServer(ada, "facts", id)));
    return one?.["confirmed"] === true && two?.["value"] === "edited by hand";
  });
  await device.expectAccessible();
});

test("a very long fact is collapsed", async () => {
  const end = "and this is how it ends";
  await push(ada, "facts", fact("f4", `${"a word ".repeat(40_000)}${end}`));
  const row = device.page.getByRole("listitem").filter({ hasText: "about.f4" });
  await row.waitFor();
  expect((await row.boundingBox())!.height).toBeLessThan(800);
  await row.getByRole("button", { name: "Show all 280,023 characters" }).click();
  await row.getByText(end).waitFor();
  await row.getByRole("button", { name: "Show less" }).click();
  expect((await row.boundingBox())!.height).toBeLessThan(800);
});

test("a chat deleted elsewhere accepts no message", async () => {
  const { page } = device;
  await push(ada, "sessions", session("s-gone", "Soon gone"));
  await page.getByRole("link", { name: "Soon gone" }).click();
  const composer = device.composer;
  await composer.waitFor();
  await push(ada, "sessions", { ...session("s-gone", "Soon gone"), _deleted: true });
  await page.getByText("This chat was deleted, here or on another device.").waitFor();
  expect(await composer.count()).toBe(0);
  await device.expectAccessible();
  await page.getByRole("log").getByRole("link", { name: "New chat" }).click();
  await composer.waitFor();
  expect(page.url()).not.toContain("s-gone");
});

test("large text fits a small screen", async () => {
  const filename = "Lease of the flat in Harbour Street, with all that was agreed later.pdf";
  await push(ada, "documents", { ...lease(ada.userId, "d-long"), activeSessions: ["s-lease"], filename });
  await push(ada, "vectorEmbeddings", block("d-long"));
  await device.until(async () => (await device.rows("documents")).length === 2);
  await device.page.setViewportSize({ width: 360, height: 740 });
  await setFontSize(32);
  for (const [name, button] of [
    ["Memory", "Forget everything"],
    ["Settings", "Set password"],
  ] as const) {
    await device.clickButton("Menu");
    await device.clickLink(name);
    await device.page.getByRole("button", { name: button }).waitFor();
    expect(await overflowing(), name).toEqual([]);
  }
  await device.clickButton("Menu");
  expect(await device.page.getByRole("button", { name: "Search", exact: true }).isVisible()).toBe(true);
  expect(await overflowing(), "Menu").toEqual([]);
  await device.clickLink("Lease of the flat");
  const composer = device.composer;
  expect((await composer.boundingBox())!.width).toBeGreaterThan(250);
  await device.page.getByText("Documents only", { exact: true }).waitFor();
  await device.clickButton("2 documents");
  await device.page.getByRole("button", { name: `Remove ${filename} from this chat` }).waitFor();
  expect(await overflowing(), "the chat").toEqual([]);
  await device.clickButton("2 documents");
  const [top, bottom] = await device.page.evaluate(() => {
    const [head, composer] = ["header", "section:has(textarea)"].map((one) =>
      document.querySelector(one)!.getBoundingClientRect(),
    );
    return [head!.bottom, [composer!.top, composer!.bottom]] as const;
  });
  expect(bottom[1], "the composer is in view").toBeLessThanOrEqual(740);
  expect(bottom[0] - top, "there is room above the composer").toBeGreaterThan(300);
});

test("the sync status fits a screen 320 pixels wide", async () => {
  await device.page.setViewportSize({ width: 320, height: 640 });
  await setFontSize(16);
  await device.untilStatusIs("synced");
  const text = device.statusLine.locator("span").first();
  const missing = await text.evaluate((element) => {
    const full = element.parentElement!.appendChild(element.cloneNode(true) as HTMLElement);
    Object.assign(full.style, { position: "absolute", width: "max-content" });
    const lacks = full.getBoundingClientRect().width - element.getBoundingClientRect().width;
    full.remove();
    return lacks;
  });
  expect(missing).toBe(0); // a fraction of a pixel cuts letters off
});

/** Set the standard font size of the browser. */
async function setFontSize(standard: number): Promise<void> {
  const session = await device.page.context().newCDPSession(device.page);
  await session.send("Page.setFontSizes", { fontSizes: { standard } });
  await device.page.waitForFunction(
    (standard) => getComputedStyle(document.documentElement).fontSize === `${standard}px`,
    standard,
  );
}

/** Return the texts of buttons that are cut off, and "the page" if it is too wide. */
const overflowing = () =>
  device.page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("html, .mantine-Button-label")]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map(({ tagName, textContent }) => (tagName === "HTML" ? "the page" : textContent)),
  );
