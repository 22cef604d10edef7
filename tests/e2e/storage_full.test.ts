/** A full or cleared browser storage: nothing is lost, and the app explains what to do. */

import type { CDPSession, Page } from "playwright-core";
import { soon } from "../soon.ts";
import { Device, harness, withServer, composerOf, ROOMY } from "./app.ts";
import { person, push, session, type Person } from "./accounts.ts";

/** The size of each written value in bytes: below 64 KiB, where Chromium starts to store values outside the quota. */
const PIECE = 60_000;

let ada: Person;
let device: Device;
let disk: CDPSession;

withServer();
beforeAll(async () => {
  ada = await person();
  const beforeOpen = async (page: Page) => {
    disk = await page.context().newCDPSession(page);
    await quota(ROOMY);
  };
  device = await Device.of(ada, { beforeOpen });
  await device.untilSyncIs("live");
});

/** Set the quota of the app in bytes. */
const quota = (quotaSize: number) =>
  disk.send("Storage.overrideQuotaForOrigin", { origin: harness.url, quotaSize });

/** Fill the storage with a write larger than the quota, at which the browser recalculates its usage. */
async function fillUp(): Promise<void> {
  const { page } = device;
  await page.goto(`${harness.url}/icon.svg`); // same origin, without the app
  await quota(1);
  const isWritten = await page.evaluate(
    async ([bytes, piece]) => {
      const opening = indexedDB.open("scratch", 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("bytes");
      await new Promise((resolve) => (opening.onsuccess = resolve));
      const writing = opening.result.transaction("bytes", "readwrite");
      const store = writing.objectStore("bytes");
      for (let n = 0; n * piece < bytes; n++) store.put(new Uint8Array(piece), n);
      const written = await new Promise<boolean>((resolve) => {
        writing.oncomplete = () => resolve(true);
        writing.onabort = () => resolve(false);
      });
      opening.result.close();
      return written;
    },
    [ROOMY, PIECE] as const,
  );
  expect(isWritten).toBe(false);
  await page.goto(harness.url);
  await composerOf(page).waitFor();
}

const notice = (what: string) =>
  device.page.locator(`button[data-status=${what}]`).waitFor({ timeout: 60_000 });

test("a full device syncs after space is freed", async () => {
  const { page } = device;
  await page.goto(`${harness.url}/icon.svg`);
  const many = Array.from({ length: 150 }, (_, n) => session(`s${n}`, `Conversation ${n}`));
  await push(ada, "sessions", ...many); // two pages
  await fillUp();
  await notice("full");
  await device.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  const tray = page.getByRole("region", { name: "Uploads" });
  await tray.getByText("This browser has no storage left for lease.txt. Nothing was stored.").waitFor();
  await device.ask("How much is the rent?");
  await page.getByText("This browser has no storage left. Nothing was stored.").waitFor();
  const composer = composerOf(page);
  expect(await composer.inputValue()).toBe("How much is the rent?");
  await page.getByRole("button", { name: "Browser storage full" }).click();
  await page.getByText("Your data on this device and on the server is safe").last().waitFor();
  await device.expectAccessible();
  expect(await device.rows("documents")).toEqual([]);

  await quota(ROOMY);
  await push(ada, "sessions", session("later", "After there was room"));
  await page.getByRole("button", { name: "Sync now" }).click();
  await page.keyboard.press("Escape");
  await device.until(async () => (await device.rows("sessions")).some(({ id }) => id === "later"));
  await device.until(async () => (await device.rows("sessions")).length >= many.length + 1);
  await composer.press("Enter");
  await device.until(async () => (await device.rows("episodes")).length === 1);
  await expect.poll(() => composer.inputValue()).toBe("");
  await tray.getByRole("button", { name: "Show files" }).click(); // the list collapsed when the answer started
  await tray.getByRole("button", { name: "Retry: lease.txt" }).click();
  await device.until(async () => (await device.rows("vectorEmbeddings")).length === 1);
  await notice("synced");
});

test("forms keep text that cannot be stored", async () => {
  const { page } = device;
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const notices = page.getByText("This browser has no storage left. Nothing was stored.");
  /** Wait for a new notice. Earlier ones stay visible for seconds. */
  const refused = async () => {
    const notice = notices.and(page.locator(":not([data-seen])"));
    await notice.waitFor();
    await notice.evaluate((element) => element.setAttribute("data-seen", ""));
  };
  const field = (name: string) => page.getByRole("textbox", { name });
  await fillUp();
  await page.getByRole("link", { name: "Memory" }).click();
  await button("Add fact").click();
  await field("Name").fill("rent");
  await field("Value").fill("940 euros a month");
  await button("Save").click();
  await refused();
  expect(await field("Value").inputValue()).toBe("940 euros a month");
  await page.getByRole("link", { name: "Projects", exact: true }).click();
  await button("New project").click();
  await field("Name").fill("Flat");
  await button("Create").click();
  await refused();
  expect(await field("Name").inputValue()).toBe("Flat");
  await page.getByRole("link", { name: "After there was room" }).press("F2");
  await field("New title").fill("Another title");
  await page.keyboard.press("Enter");
  await refused();
  expect(await field("New title").inputValue()).toBe("Another title");
  expect([await device.rows("facts"), await device.rows("projects")]).toEqual([[], []]);
  await quota(ROOMY);
  await button("Create").click();
  await device.until(async () => (await device.rows("projects")).length === 1);
});

/** Upgrade databases as a newer version of the app does. */
const upgrade = (names: string[]) =>
  device.page.evaluate(
    (names) =>
      Promise.all(
        names.map((name) => {
          const opening = indexedDB.open(name, Date.now());
          return new Promise<void>((resolve) => {
            opening.onsuccess = () => resolve(opening.result.close());
          });
        }),
      ),
    names,
  );

test("a brief database upgrade is not reported", async () => {
  const { page } = device;
  const composer = composerOf(page);
  await page.goto(harness.url);
  await composer.waitFor();
  await upgrade(["vademecum"]);
  await page.waitForTimeout(3_000);
  expect(await composer.isVisible()).toBe(true);
  await device.drop("ferry.txt", "The ferry leaves at noon.");
  await device.until(async () => (await device.rows("documents")).length === 2);
  await notice("synced");
});

test("a closed database is reported and reopened", async () => {
  const { page } = device;
  const names = await page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name!));
  await upgrade(names.filter((name) => name.endsWith("--documents") || name === "vademecum"));
  await page.getByRole("alert").getByText("Your data is still on this device.").waitFor();
  const open = async () => (await navigator.locks.query()).held!.map(({ name }) => name).join();
  // The account's lock is released, so that a newer version of the app can open the account.
  await soon(async () => expect(await page.evaluate(open)).not.toContain("vademecum-account-"));
  await page.getByRole("button", { name: "Reload" }).click();
  await composerOf(page).waitFor();
  expect(await device.rows("documents")).toHaveLength(2);
});

test("cleared storage is reported and synced again", async () => {
  const { page } = device;
  await disk.send("Storage.clearDataForOrigin", { origin: harness.url, storageTypes: "indexeddb" });
  await page.getByRole("alert").getByText("The browser deleted this app's data on this device.").waitFor();
  await device.expectAccessible();
  await page.getByRole("button", { name: "Reload" }).click();
  await composerOf(page).waitFor();
  await device.until(async () => (await device.rows("sessions")).length > 150);
  expect(await device.rows("documents")).toHaveLength(2);
});
