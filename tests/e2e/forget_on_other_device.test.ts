/** "Forget everything" or a delete on one device also clears data that only another device has. */

import { Device, harness, withOwnServer, composerOf } from "./app.ts";
import { soon } from "../soon.ts";
import { drafts } from "./accounts.ts";

withOwnServer();

type Table = "files" | "lost" | "later" | "accounts";

/** Call a method of an object store of the device database. */
function access<T>(
  device: Device,
  table: Table,
  verb: "count" | "put" | "get",
  ...given: unknown[]
): Promise<T> {
  return device.page.evaluate(
    ([table, verb, given]) =>
      new Promise<any>((resolve, reject) => {
        const opening = indexedDB.open("vademecum");
        opening.onsuccess = () => {
          const store = opening.result.transaction(table, "readwrite").objectStore(table);
          const request = (store as any)[verb](...given);
          request.onsuccess = () => (opening.result.close(), resolve(request.result));
          request.onerror = () => reject(request.error);
        };
      }),
    [table, verb, given] as const,
  );
}

const live = (device: Device) => device.until(async () => (await device.state()).sync.kind === "live");

function forgetEverything({ user }: Device): Promise<{ at: string }> {
  const body = JSON.stringify({ confirm: "forget everything" });
  return harness.request(user, "/v1/forget", { method: "POST", body });
}

let device: Device;
beforeAll(async () => {
  device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
  await device.reopen();
  await live(device);
});

test("forget everything clears the waiting data of that account only", async () => {
  const { page, user } = device;
  const loser = { collection: "facts", rowId: "f", fields: { value: "mine" }, at: "2020" };
  await access(device, "lost", "put", { id: "one", userId: user.userId, ...loser });
  await access(device, "lost", "put", { id: "two", userId: "somebody", ...loser });
  await page.evaluate(() => localStorage.setItem("draft somebody s1", "2020 draft of somebody"));
  await device.setOffline(true);
  await page.evaluate(() => (window as any).vademecum.syncNow());
  await device.untilSyncIs("offline");
  await device.drop("minutes.txt", Buffer.from("fffe00004100000042000000", "hex")); // UTF-32
  await device.until(async () => (await device.state()).uploads[0]?.stage === "needs-server");
  await device.ask("What is the rent?");
  await device.until(async () => (await device.rows("episodes"))[0]?.status === "done");
  const [turn] = await device.rows("episodes");
  await page.evaluate((id) => (window as any).vademecum.deferQuestion(id, true), turn!.id);
  await page.getByRole("textbox", { name: "Ask about your documents" }).fill("draft of mine");
  const counts = () =>
    Promise.all((["files", "later", "lost"] as const).map((t) => access(device, t, "count")));
  expect(await counts()).toEqual([1, 1, 2]);
  expect((await drafts(device)).map(({ text }) => text)).toEqual(["draft of mine"]);

  await forgetEverything(device);
  await page.evaluate(() => ((window as any).isBefore = true));
  await device.setOffline(false);
  await page.evaluate(() => (window as any).vademecum.syncNow());
  await page.waitForFunction(() => !(window as any).isBefore); // reloaded, so that its files are rewritten
  await live(device);
  expect(await counts()).toEqual([0, 0, 1]);
  await soon(async () => expect(await drafts(device)).toEqual([]));
  expect(await page.evaluate(() => localStorage.getItem("draft somebody s1"))).toBe("2020 draft of somebody");
  const composer = composerOf(page);
  await soon(async () => expect(await composer.inputValue()).toBe(""));
  expect(await harness.liveRows(user, "documents")).toEqual([]);
});

test("deleting a fact deletes its conflict losers, and deleting a chat its draft", async () => {
  const { page, user } = device;
  const at = new Date().toISOString();
  const loser = { userId: user.userId, collection: "facts", fields: { value: "mine" }, at };
  await device.call("addFact", "rent", "940");
  const { id } = (await device.rows("facts")).find(({ key }) => key === "rent")!;
  await access(device, "lost", "put", { id: "here", rowId: id, ...loser });
  await access(device, "lost", "put", { id: "gone", rowId: "gone", ...loser });
  await expect(device.call("restoreConflictLoser", "gone")).rejects.toThrow("ROW_GONE");
  await device.call("deleteRow", "facts", id);
  await soon(async () => expect(await access(device, "lost", "get", "here")).toBeUndefined());
  expect(await access(device, "lost", "get", "gone")).toMatchObject({ fields: { value: "mine" } });
  await device.call("ask", "s-gone", "What is the rent?");
  const prefix = `draft ${user.userId} `;
  await page.evaluate(
    ([prefix, at]) => ["other", "s-gone"].forEach((id) => localStorage.setItem(prefix + id, `${at} draft`)),
    [prefix, at] as const,
  );
  await device.reopen(); // opening the app moves drafts that an earlier version stored
  const ids = async () => (await drafts(device)).map(({ id }) => id);
  expect(await ids()).toEqual(["other", "s-gone"]);
  expect(await device.page.evaluate(() => Object.keys(localStorage).join())).not.toContain(prefix);
  await device.call("deleteSession", "s-gone");
  await soon(async () => expect(await ids()).toEqual(["other"]));
});

test("a row added after forgetting is newer although the clock is behind", async () => {
  const { userId } = device.user;
  const known = () => access<{ forgottenAt?: string }>(device, "accounts", "get", userId);
  await device.page.evaluate(() => ((window as any).isBefore = true));
  const { at } = await forgetEverything(device); // the device is notified although the server had no rows
  await device.page.waitForFunction(() => !(window as any).isBefore); // reloaded, so that its files are rewritten
  await live(device);
  const ahead = new Date(Date.parse(at) + 3_600_000).toISOString();
  await soon(async () => expect((await known()).forgottenAt).toBe(at));
  const account = await known();
  // Simulate a server whose clock is an hour ahead.
  await access(device, "accounts", "put", { ...account, forgottenAt: ahead });
  await device.reopen();
  await device.call("addFact", "made", "late");
  const [fact] = await device.rows("facts");
  expect(Date.parse(fact!.createdAt)).toBe(Date.parse(ahead) + 1);
  const composer = device.composer;
  await composer.fill("draft of the late");
  await device.reopen();
  const again = device.composer;
  expect(await again.inputValue()).toBe("draft of the late");
});

test("a changed tier is shown after reconnecting", async () => {
  await device.drop("lease.txt", "The rent is 940 euros a month.");
  await device.until(async () => (await device.rows("documents")).length === 1);
  await device.page.getByRole("link", { name: "Documents" }).first().click();
  await device.page.getByText("JIGGA account").waitFor();
  await harness.control("tier", { userId: device.user.userId, tier: "FREE" });
  await harness.control("restart");
  await device.call("syncNow"); // reconnect without a delay
  await device.page.getByText("FREE account").waitFor();
  expect(await device.call("account")).toMatchObject({ tier: "FREE", promptScoreShare: 0.1 });
});
