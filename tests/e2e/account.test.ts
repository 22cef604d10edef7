/** Signing in and out, export and import, several accounts on a device, and forgetting everything. */

import { readFileSync } from "node:fs";
import { strToU8, unzipSync, zipSync } from "fflate";
import type { Page } from "playwright-core";
import { Device, harness, withServer } from "./app.ts";
import {
  fact,
  factValues,
  importZip,
  onServer,
  PASSWORD,
  person,
  signIn,
  signOut,
  startSignOut,
  syncedDevice,
  withRows,
  type Person,
} from "./accounts.ts";

withServer();

let ada: Person;
let bob: Person;
let device: Device;

beforeAll(async () => {
  [ada, bob] = await Promise.all([person(), person()]);
  await withRows(ada);
  device = await syncedDevice(ada, { installs: true });
  await device.installed(); // else the offline export could not load its module
});

test("signing in again syncs waiting changes", async () => {
  await harness.request(ada, "/v1/password", {
    method: "POST",
    body: JSON.stringify({ current: PASSWORD, new: PASSWORD }),
  });
  const id = await device.call<string>("addFact", "written", "while signed out");
  await device.untilStatusIs("signed-out");
  await expect.poll(() => device.statusLine.textContent()).toBe("Signed out. Sign in to sync 1 change");
  await device.page.reload();
  await device.untilStatusIs("signed-out"); // the app opens with the data on the device
  expect(await factValues(device)).toContain("while signed out");
  await device.statusLine.click();
  await device.expectAccessible();
  await device.page.getByRole("textbox", { name: "Password" }).fill("not the password");
  await device.clickButton(`Sign in as ${ada.email}`);
  await device.page.getByText("This email and password do not match").waitFor();
  await device.page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
  await device.clickButton(`Sign in as ${ada.email}`);
  await device.until(async () => (await onServer(ada, "facts", id)) !== undefined);
  await device.untilStatusIs("synced");
  await device.page.keyboard.press("Escape");
});

const UTF_32 = "fffe00004100000042000000"; // only the server can decode it

test("an export made offline can be imported into another account", async () => {
  const names = ["documents", "vectorEmbeddings", "sessions", "facts"] as const;
  const withoutMeta = ({ _meta, _rev, _attachments, userId, ...row }: any) => row;
  const all = async () => Promise.all(names.map(async (name) => (await device.rows(name)).map(withoutMeta)));
  await device.clickLink("Settings");
  await device.page.getByText("Server storage").waitFor();
  await device.expectAccessible();
  const other = await otherTab();
  await device.setOffline(true);
  await device.page.evaluate(
    (bytes) => (window as any).vademecum.addFiles([new File([new Uint8Array(bytes)], "utf32.txt")], null),
    [...Buffer.from(UTF_32, "hex")],
  );
  await startSignOut(device, "Delete the data on this device");
  await device.page.getByText("only on this device: 1 file.").waitFor();
  await device.page.getByText("The server is not responding. Nothing was changed.").waitFor();
  await device.expectAccessible();
  await device.page.getByRole("dialog").getByRole("button", { name: "Cancel" }).last().click();
  await expectStays(other);
  const before = await all();
  const downloading = device.page.waitForEvent("download");
  await device.clickButton("Export everything");
  const file = await (await downloading).path();
  const exported = unzipSync(readFileSync(file));
  expect(Buffer.from(exported["files/1 utf32.txt"]!).toString("hex")).toBe(UTF_32);
  await device.call("cancelUpload", (await device.state()).uploads[0]!.id);
  await device.setOffline(false);
  await device.call("syncNow");
  await device.untilStatusIs("synced");
  await signOut(device, "Delete the data on this device");
  await other.waitForURL("**/sign-in");
  await other.close();
  await device.page.getByLabel("Email").waitFor();
  const text = await device.page.getByRole("main").innerText();
  for (const part of [
    "Set a password there under Settings",
    "signs you out on all devices",
    "owner@localhost",
  ]) {
    expect(text).toContain(part);
  }
  expect(await databases()).not.toContain(ada.userId);
  await device.expectAccessible();
  await signIn(device, bob);
  await device.untilStatusIs("synced");
  expect(await factValues(device)).toEqual([]); // no rows of Ada
  await device.clickLink("Settings");
  await device.page.locator("input[accept*=zip]").setInputFiles(file);
  await device.page.getByText(/entries added/u).waitFor();
  expect(await all()).toEqual(before);
  expect((await device.rows("documents"))[0]!.userId).toBe(bob.userId);
  await device.untilStatusIs("synced");
  // The rows that existed before the import are synced, too.
  const facts = async () => (await harness.liveRows(bob, "facts")).length;
  await expect.poll(facts).toBe(before[3]!.length);
  const response = await fetch(`${harness.url}/v1/export`, {
    headers: { authorization: `Bearer ${ada.token}` },
  });
  // An export made by the server has the same rows.
  const repeated = await importZip(device, new Uint8Array(await response.arrayBuffer()));
  expect(repeated).toEqual({ added: 0, existing: before.flat().length, leftOut: 0 });
});

test("an invalid import changes no row", async () => {
  const before = (await device.rows("facts")).length;
  await expect(importZip(device, strToU8("no ZIP"))).rejects.toThrow("NOT_AN_EXPORT");
  const lines = [
    "{",
    "[]",
    JSON.stringify({ ...fact("bad", "x"), confidence: 7 }),
    JSON.stringify(fact("../x", "x")),
  ];
  const result = await importZip(
    device,
    zipSync({ "facts.jsonl": strToU8(lines.join("\n")), "../evil.jsonl": strToU8("{}") }),
  );
  expect(result).toEqual({ added: 0, existing: 0, leftOut: lines.length });
  expect((await device.rows("facts")).length).toBe(before);
  await device.call("deleteRow", "facts", "f1");
  const revived = await importZip(
    device,
    zipSync({ "facts.jsonl": strToU8(JSON.stringify(fact("f1", "back again"))) }),
  );
  expect(revived.added).toBe(1); // under another id, because the deleted row stays deleted
  await device.until(async () => (await onServer(bob, "facts", "f1~2"))?.["value"] === "back again");
});

async function databases(): Promise<string> {
  return device.page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name).join());
}

test("rows of two accounts on one device never mix", async () => {
  await device.call("addFact", "secret", "canary of Bob");
  await device.untilStatusIs("synced");
  await signOut(device, "Keep the data on this device");
  await device.clickButton(`Open ${bob.email} without signing in`);
  await device.untilStatusIs("signed-out");
  expect(await factValues(device)).toContain("canary of Bob");
  await device.page.goto(`${harness.url}/sign-in`);
  await signIn(device, ada);
  await device.until(async () => (await factValues(device)).includes("canary of Ada"));
  expect(await factValues(device)).not.toContain("canary of Bob");
  expect((await harness.liveRows(ada, "facts")).map(({ value }) => value)).not.toContain("canary of Bob");
  expect(await databases()).toContain(bob.userId);
  await device.clickLink("Settings");
  const removal = device.page.getByRole("button", { name: `Remove from this device: ${bob.email}` });
  await removal.press("Enter");
  await device.page.getByRole("button", { name: "Remove from this device", exact: true }).press("Enter");
  await device.until(async () => !(await databases()).includes(bob.userId));
  await removal.waitFor({ state: "detached" });
  expect(await device.page.evaluate(() => document.activeElement!.closest("section")?.innerText)).toMatch(
    /^Accounts on this device/u,
  );
});

test("the account's usage appears when the server responds again", async () => {
  await device.clickLink("Memory");
  await device.setOffline(true);
  await device.call("syncNow");
  await device.untilStatusIs("offline");
  await device.clickLink("Settings");
  await device.page.getByText("Your usage appears here when the server responds.").waitFor();
  await device.setOffline(false);
  await device.call("syncNow");
  await device.page.getByText("Server storage").waitFor();
});

test("forget everything shows a receipt and clears the device", async () => {
  await device.clickLink("Memory");
  const field = device.page.getByLabel("To confirm, type: forget everything");
  await device.setOffline(true);
  await device.call("syncNow");
  await device.untilStatusIs("offline");
  await device.page.getByText("Only the server can do this").waitFor();
  await device.setOffline(false);
  await device.call("syncNow");
  await device.untilStatusIs("synced");
  const button = device.page.getByRole("button", { name: "Forget everything" });
  expect(await button.isDisabled()).toBe(true);
  await field.fill("forget everything");
  const other = await otherTab();
  await device.page.route("**/v1/forget", (route) => route.abort());
  await button.click();
  await device.page.getByText("The server is not responding. Nothing was changed.").waitFor();
  await expectStays(other);
  await device.page.unroute("**/v1/forget");
  await device.page.route("**/v1/forget", async (route) => {
    await route.fetch();
    await route.fulfill({ status: 500, json: { detail: "All else is erased." } });
  });
  await button.click();
  const message = device.page.getByText("All else is erased.");
  await message.waitFor();
  const isForgotten = async () => "forgottenAt" in (await device.call<object>("account"));
  await device.until(isForgotten);
  await device.untilStatusIs("synced");
  expect(await message.isVisible()).toBe(true); // still shown after a sync
  await device.clickLink("Settings"); // leaving the page resets the form
  await device.clickLink("Memory");
  await field.waitFor();
  expect(await field.inputValue()).toBe("");
  await field.fill("forget everything");
  await device.page.unroute("**/v1/forget");
  await device.page.evaluate((userId) => {
    localStorage.setItem(`draft ${userId} other`, "9999 draft");
    Storage.prototype.removeItem = () => {
      throw new Error("No."); // simulate a browser that cannot delete drafts
    };
  }, ada.userId);
  await button.click();
  const receipt = device.page.getByRole("dialog", { name: "Everything has been erased" });
  await receipt.waitFor();
  expect(await receipt.textContent()).toMatch(
    /Erased \d+ entr(?:y|ies) .* \d+ files? .* nothing is left on the server/u,
  );
  expect(await receipt.textContent()).toContain("could not be deleted");
  expect(await receipt.textContent()).not.toContain("another tab");
  await device.expectAccessible();
  await other.waitForURL("**/sign-in");
  await device.clickButton("Start over");
  await receipt.waitFor({ state: "detached" });
  await device.untilStatusIs("synced");
  expect(await factValues(device)).toEqual([]);
  expect(await harness.liveRows(ada, "facts")).toEqual([]);
});

test("deleting local data waits until another tab releases the account", async () => {
  const holder = await holdAccount(ada);
  await startSignOut(device, "Delete the data on this device");
  const dialog = device.page.getByRole("dialog");
  await device.until(async () => (await openTabs()) === 1); // this tab has closed the account
  await device.page.keyboard.press("Escape");
  expect(await dialog.getByRole("button", { name: "Cancel" }).last().isDisabled()).toBe(true);
  expect(new URL(device.page.url()).pathname).toBe("/settings");
  expect(await databases()).toContain(ada.userId);
  await holder.close();
  await device.page.waitForURL("**/sign-in");
  expect(await databases()).not.toContain(ada.userId);
});

/** Open a tab that holds the lock of an account and ignores messages. */
async function holdAccount({ userId }: Person): Promise<Page> {
  const tab = await device.page.context().newPage();
  await tab.goto(`${harness.url}/v1/me`); // not a page of the app
  await tab.evaluate((name) => {
    void navigator.locks.request(name, { mode: "shared" }, () => new Promise(() => {}));
  }, `vademecum-account-${userId}`);
  await device.page.bringToFront();
  return tab;
}

/** Count the tabs that have Ada's account open. */
function openTabs(): Promise<number> {
  return device.page.evaluate(
    async (name) => (await navigator.locks.query()).held!.filter((lock) => lock.name === name).length,
    `vademecum-account-${ada.userId}`,
  );
}

/** Open another tab of the app in the same browser. */
async function otherTab(): Promise<Page> {
  const tab = await device.open("/documents");
  await tab.locator("[data-status]").waitFor();
  await tab.evaluate(() => ((window as any).isSamePage = true));
  await device.page.bringToFront(); // a page in the background renders once a second
  return tab;
}

/** Expect that a tab was not reloaded and still receives changes. */
async function expectStays(tab: Page): Promise<void> {
  const id = await device.call<string>("addFact", "seen", "in both tabs");
  await tab.waitForFunction(async (id) => {
    const rows = await (window as any).vademecum?.rows("facts", { selector: { id } });
    return (window as any).isSamePage && rows?.length === 1;
  }, id);
}
