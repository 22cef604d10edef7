/** Who is here and what this device keeps: signed out, taken out, wiped, brought in, shared by two, forgotten. */

import { readFileSync } from "node:fs";
import { strToU8, unzipSync, zipSync } from "fflate";
import type { Page } from "playwright-core";
import { harness, withServer } from "./app.ts";
import { fact, onServer, PASSWORD, person, Visit, withRows, type Person } from "./accounts.ts";

withServer();

let ada: Person;
let bob: Person;
let visit: Visit;

beforeAll(async () => {
  [ada, bob] = await Promise.all([person(), person()]);
  await withRows(ada);
  visit = await Visit.of(ada, { installs: true });
});

test("signing in again syncs waiting changes", async () => {
  await harness.call(ada, "/v1/password", {
    method: "POST",
    body: JSON.stringify({ current: PASSWORD, new: PASSWORD }),
  });
  const id = await visit.ask<string>("addFact", "written", "while signed out");
  await visit.said("signed-out");
  await expect.poll(() => visit.line().textContent()).toBe("Signed out. Sign in to sync 1 change");
  await visit.page.reload();
  await visit.said("signed-out"); // it opens with what is here
  expect(await visit.values()).toContain("while signed out");
  await visit.line().click();
  await visit.accessible();
  await visit.page.getByRole("textbox", { name: "Password" }).fill("not the password");
  await visit.press(`Sign in as ${ada.email}`);
  await visit.page.getByText("This email and password do not go together").waitFor();
  await visit.page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
  await visit.press(`Sign in as ${ada.email}`);
  await visit.device.until(async () => (await onServer(ada, "facts", id)) !== undefined);
  await visit.said("synced");
  await visit.page.keyboard.press("Escape");
});

const UTF_32 = "fffe00004100000042000000"; // only the server reads it

test("an offline export imports into another account", async () => {
  const names = ["documents", "vectorEmbeddings", "sessions", "facts"] as const;
  const bare = ({ _meta, _rev, _attachments, userId, ...row }: any) => row;
  const all = async () => Promise.all(names.map(async (name) => (await visit.device.rows(name)).map(bare)));
  await visit.goTo("Settings");
  await visit.page.getByText("Server storage").waitFor();
  await visit.accessible();
  const other = await visit.otherTab();
  await visit.device.offline(true);
  await visit.page.evaluate(
    (bytes) => (window as any).vademecum.addFiles([new File([new Uint8Array(bytes)], "utf32.txt")], null),
    [...Buffer.from(UTF_32, "hex")],
  );
  await visit.askToSignOut("Delete the data on this device");
  await visit.page.getByText("only on this device: 1 file.").waitFor();
  await visit.page.getByText("The server is not responding. Nothing was changed.").waitFor();
  await visit.accessible();
  await visit.page.getByRole("dialog").getByRole("button", { name: "Cancel" }).last().click();
  await visit.stays(other);
  const before = await all();
  const downloading = visit.page.waitForEvent("download");
  await visit.press("Export everything");
  const file = await (await downloading).path();
  const taken = unzipSync(readFileSync(file));
  expect(Buffer.from(taken["files/1 utf32.txt"]!).toString("hex")).toBe(UTF_32);
  await visit.ask("cancelUpload", (await visit.device.state()).uploads[0]!.id);
  await visit.device.offline(false);
  await visit.ask("syncNow");
  await visit.said("synced");
  await visit.signOut("Delete the data on this device");
  await other.waitForURL("**/sign-in");
  await other.close();
  await visit.page.getByLabel("Email").waitFor();
  const told = await visit.page.getByRole("main").innerText();
  for (const part of [
    "Set a password there under Settings",
    "signs you out on all devices",
    "owner@localhost",
  ]) {
    expect(told).toContain(part);
  }
  expect(await databases()).not.toContain(ada.userId);
  await visit.accessible();
  await visit.signIn(bob);
  await visit.said("synced");
  expect(await visit.values()).toEqual([]); // nothing of Ada's
  await visit.goTo("Settings");
  await visit.page.locator("input[accept*=zip]").setInputFiles(file);
  await visit.page.getByText(/entries added/u).waitFor();
  expect(await all()).toEqual(before);
  expect((await visit.device.rows("documents"))[0]!.userId).toBe(bob.userId);
  await visit.said("synced");
  // What was there before the rows were taken in was synced, too.
  const facts = async () => (await harness.live(bob, "facts")).length;
  await expect.poll(facts).toBe(before[3]!.length);
  const answer = await fetch(`${harness.url}/v1/export`, {
    headers: { authorization: `Bearer ${ada.token}` },
  });
  const again = await visit.bringIn(new Uint8Array(await answer.arrayBuffer())); // the server's own, of the same rows
  expect(again).toEqual({ added: 0, existing: before.flat().length, leftOut: 0 });
});

test("an invalid import changes nothing", async () => {
  const held = (await visit.device.rows("facts")).length;
  await expect(visit.bringIn(strToU8("no ZIP"))).rejects.toThrow("NOT_AN_EXPORT");
  const lines = [
    "{",
    "[]",
    JSON.stringify({ ...fact("bad", "x"), confidence: 7 }),
    JSON.stringify(fact("../x", "x")),
  ];
  const told = await visit.bringIn(
    zipSync({ "facts.jsonl": strToU8(lines.join("\n")), "../evil.jsonl": strToU8("{}") }),
  );
  expect(told).toEqual({ added: 0, existing: 0, leftOut: lines.length });
  expect((await visit.device.rows("facts")).length).toBe(held);
  await visit.ask("deleteRow", "facts", "f1");
  const back = await visit.bringIn(
    zipSync({ "facts.jsonl": strToU8(JSON.stringify(fact("f1", "back again"))) }),
  );
  expect(back.added).toBe(1); // under another id: what was deleted stays deleted
  await visit.device.until(async () => (await onServer(bob, "facts", "f1~2"))?.["value"] === "back again");
});

async function databases(): Promise<string> {
  return visit.page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name).join());
}

test("two accounts on one device never mix", async () => {
  await visit.ask("addFact", "secret", "canary of Bob");
  await visit.said("synced");
  await visit.signOut("Keep the data on this device");
  await visit.press(`Open ${bob.email} without signing in`);
  await visit.said("signed-out");
  expect(await visit.values()).toContain("canary of Bob");
  await visit.page.goto(`${harness.url}/sign-in`);
  await visit.signIn(ada);
  await visit.device.until(async () => (await visit.values()).includes("canary of Ada"));
  expect(await visit.values()).not.toContain("canary of Bob");
  expect((await harness.live(ada, "facts")).map(({ value }) => value)).not.toContain("canary of Bob");
  expect(await databases()).toContain(bob.userId);
  await visit.goTo("Settings");
  const removal = visit.page.getByRole("button", { name: `Remove from this device: ${bob.email}` });
  await removal.press("Enter");
  await visit.page.getByRole("button", { name: "Remove from this device", exact: true }).press("Enter");
  await visit.device.until(async () => !(await databases()).includes(bob.userId));
  await removal.waitFor({ state: "detached" });
  expect(await visit.page.evaluate(() => document.activeElement!.closest("section")?.innerText)).toMatch(
    /^Accounts on this device/u, // where one sees that it is gone
  );
});

test("usage appears when the server is back", async () => {
  await visit.goTo("Memory");
  await visit.device.offline(true);
  await visit.ask("syncNow");
  await visit.said("offline");
  await visit.goTo("Settings");
  await visit.page.getByText("Your usage appears here when the server responds.").waitFor();
  await visit.device.offline(false);
  await visit.ask("syncNow");
  await visit.page.getByText("Server storage").waitFor();
});

test("forget everything shows a receipt and clears the device", async () => {
  await visit.goTo("Memory");
  const field = visit.page.getByLabel("To confirm, type: forget everything");
  await visit.device.offline(true);
  await visit.ask("syncNow");
  await visit.said("offline");
  await visit.page.getByText("The server has to do this").waitFor();
  await visit.device.offline(false);
  await visit.ask("syncNow");
  await visit.said("synced");
  const button = visit.page.getByRole("button", { name: "Forget everything" });
  expect(await button.isDisabled()).toBe(true);
  await field.fill("forget everything");
  const other = await visit.otherTab();
  await visit.page.route("**/v1/forget", (route) => route.abort()); // the network breaks at that moment
  await button.click();
  await visit.page.getByText("The server is not responding. Nothing was changed.").waitFor();
  await visit.stays(other);
  await visit.page.unroute("**/v1/forget");
  await visit.page.route("**/v1/forget", async (route) => {
    await route.fetch();
    await route.fulfill({ status: 500, json: { detail: "All else is erased." } });
  });
  await button.click();
  const told = visit.page.getByText("All else is erased.");
  await told.waitFor();
  const isForgotten = async () => "forgottenAt" in (await visit.ask<object>("account"));
  await visit.device.until(isForgotten);
  await visit.said("synced");
  expect(await told.isVisible()).toBe(true); // what is heard of it from the server does not take it away
  await visit.goTo("Settings"); // who goes elsewhere has read it, and finds all of it anew
  await visit.goTo("Memory");
  await field.waitFor();
  expect(await field.inputValue()).toBe("");
  await field.fill("forget everything");
  await visit.page.unroute("**/v1/forget");
  await visit.page.evaluate((userId) => {
    localStorage.setItem(`draft ${userId} other`, "9999 draft");
    Storage.prototype.removeItem = () => {
      throw new Error("No."); // a browser that keeps what it is to remove
    };
  }, ada.userId);
  await button.click();
  const receipt = visit.page.getByRole("dialog", { name: "Everything has been erased" });
  await receipt.waitFor();
  expect(await receipt.textContent()).toMatch(
    /Erased \d+ entries and \d+ files .* nothing is left on the server/u,
  );
  expect(await receipt.textContent()).toContain("could not be deleted");
  expect(await receipt.textContent()).not.toContain("another tab");
  await visit.accessible();
  await other.waitForURL("**/sign-in");
  await visit.press("Start over");
  await visit.said("synced");
  expect(await visit.values()).toEqual([]);
  expect(await harness.live(ada, "facts")).toEqual([]);
});

test("deleting local data waits for another tab", async () => {
  const held = await holds(ada);
  await visit.askToSignOut("Delete the data on this device");
  const dialog = visit.page.getByRole("dialog");
  await visit.device.until(async () => (await openHere()) === 1); // this tab has left, the other has not
  await visit.page.keyboard.press("Escape");
  expect(await dialog.getByRole("button", { name: "Cancel" }).last().isDisabled()).toBe(true);
  expect(new URL(visit.page.url()).pathname).toBe("/settings");
  expect(await databases()).toContain(ada.userId);
  await held.close();
  await visit.page.waitForURL("**/sign-in");
  expect(await databases()).not.toContain(ada.userId);
});

/** A tab that has the account open and hears nothing. */
async function holds({ userId }: Person): Promise<Page> {
  const tab = await visit.page.context().newPage();
  await tab.goto(`${harness.url}/v1/me`); // no page of the app
  await tab.evaluate((name) => {
    void navigator.locks.request(name, { mode: "shared" }, () => new Promise(() => {}));
  }, `vademecum-account-${userId}`);
  await visit.page.bringToFront();
  return tab;
}

/** How many tabs have Ada's account open. */
function openHere(): Promise<number> {
  return visit.page.evaluate(
    async (name) => (await navigator.locks.query()).held!.filter((lock) => lock.name === name).length,
    `vademecum-account-${ada.userId}`,
  );
}
