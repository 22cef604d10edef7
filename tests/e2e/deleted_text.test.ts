/** Deleted text is erased from the files of the browser: search the bytes of a Chromium profile for it. */

import { randomUUID } from "node:crypto";
import type { CDPSession, Page } from "playwright-core";
import { soon } from "../soon.ts";
import { Device, harness, withServer, composerOf, ROOMY } from "./app.ts";
import { block, lease, push } from "./accounts.ts";
import { canary, filesWith } from "./profile_scan.ts";

withServer();

interface Filled {
  device: Device;
  profile: string;
  /** Texts in a document, a fact, a question and its answer, a draft, and a conflict loser. */
  canaries: string[];
  /** A text in a fact that is not deleted. */
  other: string;
}

/** Return a device whose profile has canaries in everything that can be deleted, and one in a fact that stays. */
async function filled(): Promise<Filled> {
  const device = await Device.of(await harness.user(), { processArguments: [] });
  const [inDocument, inFact, inQuestion, inDraft, inLost, other] = Array.from({ length: 6 }, canary) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  await device.drop("lease.txt", `The rent is ${inDocument} euros a month.`);
  await device.embedded(1);
  await device.call("addFact", "deleted", inFact);
  await device.call("addFact", "kept", other);
  await composerOf(device.page).fill(`What is the ${inQuestion}?`);
  await composerOf(device.page).press("Enter");
  await device.until(async () => (await device.rows("episodes"))[0]?.status === "done");
  await composerOf(device.page).fill(inDraft);
  await account(device, "lost", {
    ...{ id: randomUUID(), userId: device.user.userId, collection: "facts", rowId: "none" },
    ...{ fields: { value: inLost }, at: "2020-01-01T00:00:00.000Z" },
  });
  await synced(device);
  const profile = device.browser.profile!;
  for (const one of [inDocument, inFact, inQuestion, inDraft, inLost, other])
    await soon(() => expect(filesWith(profile, [one])).not.toEqual([])); // check that the scan works
  return { device, profile, canaries: [inDocument, inFact, inQuestion, inDraft, inLost], other };
}

/** Add a hundred facts. */
const addFacts = ({ page }: Device, value: () => string): Promise<void> =>
  page.evaluate(
    async (values) => {
      for (const [n, one] of values.entries()) await (window as any).vademecum.addFact(`fact ${n}`, one);
    },
    Array.from({ length: 100 }, value),
  );

const synced = (device: Device) =>
  device.until(async () => {
    const { kind, waiting } = (await device.state()).sync;
    return kind === "live" && waiting === 0;
  });

/** Store a conflict loser, or change the account row. */
function account(device: Device, table: "lost" | "accounts", change: object): Promise<void> {
  return device.page.evaluate(
    ([table, change, userId]) =>
      new Promise<void>((resolve) => {
        const opening = indexedDB.open("vademecum");
        opening.onsuccess = () => {
          const database = opening.result;
          const store = database.transaction(table, "readwrite").objectStore(table);
          const reading = store.get(userId);
          reading.onsuccess = () => (store.put({ ...reading.result, ...change }), undefined);
          store.transaction.oncomplete = () => (database.close(), resolve());
        };
      }),
    [table, change, device.user.userId] as const,
  );
}

test("a due rewrite erases deleted text from the browser profile", async () => {
  const { device, profile, canaries, other } = await filled();
  const [document] = await device.rows("documents");
  const fact = (await device.rows("facts")).find(({ key }) => key === "deleted")!;
  await device.call("deleteDocuments", [document!.id]);
  await device.call("deleteRow", "facts", fact.id);
  await device.call("deleteSession", (await device.rows("sessions"))[0]!.id);
  await synced(device);
  type Leftover = { storages: string[] };
  const leftoverOf = async () => (await device.call<{ leftover?: Leftover }>("account")).leftover;
  await soon(async () => expect((await leftoverOf())?.storages).toContain("facts"));
  const leftover = (await leftoverOf())!;
  expect(leftover.storages).not.toContain("memories");

  await device.reopen(); // not due yet
  await account(device, "accounts", { leftover: { ...leftover, since: "2020-01-01T00:00:00.000Z" } });
  device.browser.requests.length = 0;
  await device.reopen();
  expect(await device.call("deletedTextStatus")).toBeNull();
  await soon(() => expect(filesWith(profile, canaries.slice(0, 4))).toEqual([]));
  expect((await device.rows("facts")).map(({ value }) => value)).toEqual([other]);
  await synced(device);
  const pullFromStart = /\/(documents|vectorEmbeddings|facts|sessions|episodes)\/0\/pull\?lwt=0&/u;
  expect(device.browser.requests.filter((url) => pullFromStart.test(url))).toEqual([]); // the rewrite keeps the checkpoints
  expect(device.browser.requests.filter((url) => url.includes("/push"))).toEqual([]);
});

test.each(["this device", "another device"])("forget everything on %s erases all text", async (where) => {
  const { device, profile, canaries, other } = await filled();
  const { page, user } = device;
  if (where === "this device") {
    await page.goto(`${harness.url}/memory`);
    await synced(device);
    await page.getByLabel("To confirm, type: forget everything").fill("forget everything");
    await page.getByRole("button", { name: "Forget everything" }).click();
    await page.getByText("Nothing is left on this device.").waitFor();
  } else {
    const body = JSON.stringify({ confirm: "forget everything" });
    await harness.request(user, "/v1/forget", { method: "POST", body });
  }
  await soon(() => expect(filesWith(profile, [...canaries, other])).toEqual([]));
});

const ROUNDS = process.env["SOAK"] ? 50 : 2;

test(`closing the page during a rewrite loses no row, ${ROUNDS} times`, async () => {
  const device = await Device.of(await harness.user(), { processArguments: [] });
  await addFacts(device, () => canary().repeat(10));
  await synced(device);
  const page = await device.browser.page(`${harness.url}/v1/me`); // not a page of the app
  const databases = () =>
    page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name!).sort());
  for (let round = 0; round < ROUNDS; round++) {
    const before = await databases();
    await account(device, "accounts", {
      leftover: { since: "2020-01-01T00:00:00.000Z", deletes: 1, storages: ["*"] },
    });
    await device.page.close();
    const opened = await device.browser.page(harness.url);
    await page.evaluate(async (ms) => {
      const isCopied = async () =>
        (await indexedDB.databases()).some(({ name }) => name!.startsWith("copy-of-rxdb"));
      while (!(await isCopied())) if (performance.now() > 60_000) throw new Error("It is not rewritten.");
      await new Promise((resolve) => setTimeout(resolve, ms));
    }, round * 60); // at a different moment each time
    await opened.close();
    await device.reopen();
    expect((await device.rows("facts")).length).toBe(100);
    await soon(async () => expect(await databases()).toEqual(before));
  }
});

const databasesOf = (page: Page) =>
  page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name!).sort());

const copiesOf = async (page: Page) =>
  (await databasesOf(page)).filter((name) => name.startsWith("copy-of-rxdb"));

/** Keep databases whose name contains `part` open in a page without the app, so that their deletion waits. */
async function hold(page: Page, part: string): Promise<void> {
  await page.goto(`${harness.url}/v1/me`);
  await page.evaluate(async (part) => {
    const names = (await indexedDB.databases())
      .map(({ name }) => name!)
      .filter((name) => name.includes(part));
    const opened = names.map(
      (name) =>
        new Promise<IDBDatabase>((resolve) => {
          const opening = indexedDB.open(name);
          opening.onsuccess = () => resolve(opening.result);
        }),
    );
    const databases = await Promise.all(opened);
    const deletions = databases.map(
      (database) => new Promise((resolve) => (database.onversionchange = resolve)),
    );
    Object.assign(window, { held: databases, isDeleting: Promise.race(deletions).then(() => true) });
  }, part);
}

const isDeleting = (page: Page) => page.evaluate(() => (window as any).isDeleting as Promise<true>);

const releaseLock = (page: Page) =>
  page.evaluate(() => (window as any).held.forEach((database: IDBDatabase) => database.close()));

/** Return a page that has copied the facts in a rewrite and waits to delete the original database. */
async function midRewrite(device: Device, holder: Page): Promise<Page> {
  await addFacts(device, () => "value");
  await synced(device);
  await account(device, "accounts", {
    leftover: { since: "2020-01-01T00:00:00.000Z", deletes: 1, storages: ["facts"] },
  });
  await hold(holder, "--facts");
  await device.page.close();
  const rewriting = await device.browser.page(harness.url);
  await isDeleting(holder);
  return rewriting;
}

test("a waiting tab finishes a closed tab's rewrite", async () => {
  const device = await Device.of(await harness.user());
  const holder = await device.page.context().newPage();
  const rewriting = await midRewrite(device, holder);
  const waiting = await device.browser.page(harness.url);
  await holder.evaluate(async (lock) => {
    while (!(await navigator.locks.query()).pending!.some(({ name }) => name === lock))
      await new Promise((resolve) => setTimeout(resolve, 20));
  }, `vademecum-account-${device.user.userId}`);
  await rewriting.close();
  await releaseLock(holder);
  device.page = waiting;
  await composerOf(waiting).waitFor();
  expect(await copiesOf(holder)).toEqual([]);
  expect((await device.rows("facts")).length).toBe(100);
});

test("a rewrite that runs out of space keeps its copy", async () => {
  let holder!: Page;
  let disk!: CDPSession;
  const quota = (quotaSize?: number) =>
    disk.send("Storage.overrideQuotaForOrigin", { origin: harness.url, ...(quotaSize ? { quotaSize } : {}) });
  const beforeOpen = async (page: Page) => {
    holder = await page.context().newPage();
    disk = await holder.context().newCDPSession(holder);
    await quota(ROOMY);
  };
  const device = await Device.of(await harness.user(), { beforeOpen });
  await (await midRewrite(device, holder)).close();
  await quota(1);
  const isWritten = await holder.evaluate(async (bytes) => {
    const opening = indexedDB.open("scratch", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("bytes");
    await new Promise((resolve) => (opening.onsuccess = opening.onerror = resolve));
    if (opening.error) return false;
    const writing = opening.result.transaction("bytes", "readwrite");
    for (let n = 0; n * 60_000 < bytes; n++) writing.objectStore("bytes").put(new Uint8Array(60_000), n);
    return new Promise<boolean>((resolve) => {
      writing.oncomplete = () => resolve(true);
      writing.onabort = () => resolve(false);
    });
  }, ROOMY);
  expect(isWritten).toBe(false);
  await releaseLock(holder);
  device.page = await device.browser.page(harness.url);
  await device.page.getByRole("alert").getByText("This device does not have enough free space").waitFor();
  expect((await copiesOf(holder)).length).toBe(1);
  await quota();
  await device.page.getByRole("button", { name: "Reload" }).click();
  await composerOf(device.page).waitFor();
  expect((await device.rows("facts")).length).toBe(100);
  expect(await copiesOf(holder)).toEqual([]);
});

test("an account stays listed until all its rows are removed", async () => {
  const device = await Device.of(await harness.user());
  const { email } = await device.call<{ email: string }>("account");
  await device.call("addFact", "key", "value");
  await synced(device);
  const holder = await device.page.context().newPage();
  await hold(holder, "meta");
  await device.page.evaluate(() => void (window as any).vademecum.removeFromDevice()); // waits for the holder
  await isDeleting(holder);
  await soon(async () => expect((await databasesOf(holder)).join()).not.toContain("--facts"));
  await device.page.close();
  await releaseLock(holder);
  device.page = await device.browser.page(`${harness.url}/sign-in`);
  await device.page.getByText(email).first().waitFor();
  device.page = await device.browser.page(harness.url);
  await soon(async () => expect((await device.rows("facts")).map(({ key }) => key)).toEqual(["key"]));
});

test.runIf(process.env["SOAK"])("a large profile keeps no deleted text", async () => {
  const { device, profile, canaries } = await filled();
  const { user } = device;
  const words = () => Array.from({ length: 20 }, canary).join(" ");
  for (let at = 0; at < 10; at++) {
    const id = `big-${at}`;
    await push(user, "documents", { ...lease(user.userId, id), activeSessions: [], chunkCount: 160 });
    const blocks = Array.from({ length: 10 }, (_, n) => ({
      ...{ ...block(id), id: `${id}.${n}`, block: n },
      chunks: Array.from({ length: 16 }, (_, index) => ({
        ...{ index: 16 * n + index, start: 2000 * (16 * n + index), text: words(), tokens: 400 },
      })),
    }));
    await push(user, "vectorEmbeddings", ...blocks);
  }
  await device.until(async () => (await device.rows("vectorEmbeddings")).length >= 101);
  await synced(device);
  const documents = (await device.rows("documents")).filter(({ id }) => !id.startsWith("big-"));
  await device.call(
    "deleteDocuments",
    documents.map(({ id }) => id),
  );
  await device.call("deleteSession", (await device.rows("sessions"))[0]!.id); // its answer quotes the document
  await synced(device);
  await soon(async () => expect(await device.call("deletedTextStatus")).not.toBeNull());
  const { leftover } = await device.call<{ leftover: object }>("account");
  await account(device, "accounts", { leftover: { ...leftover, since: "2020-01-01T00:00:00.000Z" } });
  const began = performance.now();
  await device.reopen();
  console.log(`Opened in ${Math.round(performance.now() - began)} ms.`);
  await soon(() => expect(filesWith(profile, canaries.slice(0, 1))).toEqual([]));
  expect((await device.rows("vectorEmbeddings")).length).toBe(100);
});
