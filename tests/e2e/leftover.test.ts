/** Deleted text leaves the files of the browser: the bytes of a Chromium profile are searched for it. */

import { randomUUID } from "node:crypto";
import { soon } from "../soon.ts";
import { Device, harness, withServer } from "./app.ts";
import { block, lease, push } from "./people.ts";
import { canary, filesWith } from "./profile_scan.ts";

withServer();

interface Filled {
  device: Device;
  profile: string;
  /** In a document, a fact, a question and its answer, and in words that a conflict took. */
  canaries: string[];
  kept: string;
}

/** A device whose profile has canaries in all that can be deleted, and one in a fact that stays. */
async function filled(): Promise<Filled> {
  const device = await Device.of(await harness.user(), { own: [] });
  const [inDocument, inFact, inQuestion, inLost, kept] = [canary(), canary(), canary(), canary(), canary()];
  await device.drop("lease.txt", `The rent is ${inDocument} euros a month.`);
  await device.embedded(1);
  await tell(device, "addFact", "deleted", inFact);
  await tell(device, "addFact", "kept", kept);
  await device.ask(`What is the ${inQuestion}?`);
  await device.until(async () => (await device.rows("episodes"))[0]?.status === "done");
  await account(device, "lost", {
    ...{ id: randomUUID(), userId: device.user.userId, collection: "facts", rowId: "none" },
    ...{ fields: { value: inLost }, at: "2020-01-01T00:00:00.000Z" },
  });
  await synced(device);
  const profile = device.browser.profile!;
  for (const one of [inDocument, inFact, inQuestion, inLost, kept])
    await soon(() => expect(filesWith(profile, [one])).not.toEqual([])); // the scan finds what is there
  return { device, profile, canaries: [inDocument, inFact, inQuestion, inLost], kept };
}

const tell = <T>({ page }: Device, verb: string, ...given: unknown[]): Promise<T> =>
  page.evaluate(([verb, given]) => (window as any).vademecum[verb](...given), [verb, given] as const);

const synced = (device: Device) =>
  device.until(async () => {
    const { kind, waiting } = (await device.state()).sync;
    return kind === "live" && waiting === 0;
  });

/** Store a row beside the synced ones, or change the account's. */
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

test("after a delete, the storages that had the text are rewritten when it is due, and the rest stays", async () => {
  const { device, profile, canaries, kept } = await filled();
  const [document] = await device.rows("documents");
  const fact = (await device.rows("facts")).find(({ key }) => key === "deleted")!;
  await tell(device, "deleteDocuments", [document!.id]);
  await tell(device, "deleteRow", "facts", fact.id);
  await tell(device, "deleteSession", (await device.rows("sessions"))[0]!.id);
  await synced(device);
  await soon(async () => expect(await tell(device, "leftover")).not.toBeNull());
  const { leftover } = await tell<{ leftover: { storages: string[] } }>(device, "account");
  expect(leftover.storages).toContain("facts");
  expect(leftover.storages).not.toContain("memories");

  await device.reopen(); // not due yet
  await account(device, "accounts", { leftover: { ...leftover, since: "2020-01-01T00:00:00.000Z" } });
  device.browser.requests.length = 0;
  await device.reopen();
  expect(await tell(device, "leftover")).toBeNull();
  await soon(() => expect(filesWith(profile, canaries.slice(0, 3))).toEqual([]));
  expect((await device.rows("facts")).map(({ value }) => value)).toEqual([kept]);
  await synced(device);
  const anew = /\/(documents|vectorEmbeddings|facts|sessions|episodes)\/0\/pull\?lwt=0&/u;
  expect(device.browser.requests.filter((url) => anew.test(url))).toEqual([]); // checkpoints stay
  expect(device.browser.requests.filter((url) => url.includes("/push"))).toEqual([]);
});

test.each(["this device", "another device"])("everything is forgotten on %s", async (where) => {
  const { device, profile, canaries, kept } = await filled();
  const { page, user } = device;
  if (where === "this device") {
    await page.goto(`${harness.url}/memory`);
    await synced(device);
    await page.getByLabel("To go on, type: forget everything").fill("forget everything");
    await page.getByRole("button", { name: "Forget everything" }).click();
    await page.getByText("This device is clean.").waitFor();
  } else {
    const body = JSON.stringify({ confirm: "forget everything" });
    await harness.call(user, "/v1/forget", { method: "POST", body });
  }
  await soon(() => expect(filesWith(profile, [...canaries, kept])).toEqual([]));
});

const ROUNDS = process.env["SOAK"] ? 50 : 2;

test(`a page that is closed while it rewrites loses nothing, ${ROUNDS} times`, async () => {
  const device = await Device.of(await harness.user(), { own: [] });
  for (let n = 0; n < 100; n++) await tell(device, "addFact", `fact ${n}`, canary().repeat(10));
  await synced(device);
  const page = await device.browser.page(`${harness.url}/v1/me`); // no page of the app
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
    }, round * 60); // at another moment each time
    await opened.close();
    await device.reopen();
    expect((await device.rows("facts")).length).toBe(100);
    await soon(async () => expect(await databases()).toEqual(before));
  }
});

test.runIf(process.env["SOAK"])("a profile of several megabytes keeps no canary either", async () => {
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
  await tell(
    device,
    "deleteDocuments",
    documents.map(({ id }) => id),
  );
  await tell(device, "deleteSession", (await device.rows("sessions"))[0]!.id); // its answer quotes the document
  await synced(device);
  await soon(async () => expect(await tell(device, "leftover")).not.toBeNull());
  const { leftover } = await tell<{ leftover: object }>(device, "account");
  await account(device, "accounts", { leftover: { ...leftover, since: "2020-01-01T00:00:00.000Z" } });
  const began = performance.now();
  await device.reopen();
  console.log(`Opened in ${Math.round(performance.now() - began)} ms.`);
  await soon(() => expect(filesWith(profile, canaries.slice(0, 1))).toEqual([]));
  expect((await device.rows("vectorEmbeddings")).length).toBe(100);
});
