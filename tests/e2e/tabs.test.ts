/** Several tabs of one browser share the cookie and the rows, and one of them syncs. */

import type { Page } from "playwright-core";
import { Device, harness, composerOf } from "./app.ts";
import { withAssistant } from "./scripted_assistant.ts";
import { soon } from "../soon.ts";

withAssistant([{ when: "rent", say: ["The rent is ", "**940 euros**", ", see [1]."] }]);

const WAITING = process.env["SOAK"] ? 8 : 3;
/** `shared` has two accounts; `device` has one with two tabs. */
let shared: Device;
let device: Device;
let second: Page;

beforeAll(async () => {
  [shared, device] = await Promise.all([
    Device.of(await harness.user()),
    Device.of(await harness.user(), { installs: true }),
  ]);
  await device.modelReady();
  await device.installed();
  await device.page.reload(); // now the service worker serves the app
  second = await device.open("/");
  await second.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
});

const answers = () => device.browser.requests.filter((url) => url.endsWith("/v1/answer"));

/** Open a tab that holds a lock. */
async function holds(page: Page, lock: string): Promise<Page> {
  const tab = await page.context().newPage();
  await tab.goto(`${harness.url}/v1/me`); // not a page of the app
  await tab.evaluate(
    (lock) =>
      new Promise<void>((acquired) => {
        void navigator.locks.request(lock, () => (acquired(), new Promise(() => {})));
      }),
    lock,
  );
  await page.bringToFront();
  return tab;
}

test("rows of another account in another tab never mix", async () => {
  const [device, alice, bob] = [shared, shared.user, await harness.user()];
  const note = (name: string) =>
    device.page.evaluate((key) => (window as any).vademecum.addFact(key, "mine"), name);
  await note("before");
  await device.until(async () => (await harness.liveRows(alice, "facts")).length === 1);
  const other = await device.open(bob.link);
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
  await note("after");
  await device.untilSyncIs("signed-out");
  await other.evaluate(() => (window as any).vademecum.addFact("of Bob", "his"));
  await device.until(async () => (await harness.liveRows(bob, "facts")).length > 0);
  const keys = async (rows: Promise<Record<string, any>[]>) => (await rows).map(({ key }) => key).sort();
  expect(await keys(harness.liveRows(bob, "facts"))).toEqual(["of Bob"]);
  expect(await keys(device.rows("facts"))).toEqual(["after", "before"]);
  await expect(device.call("forgetEverything")).rejects.toThrow();
  expect(await keys(harness.liveRows(bob, "facts"))).toEqual(["of Bob"]);
  const { email } = await harness.request<{ email: string }>(alice, "/v1/me");
  await device.page.goto(`${harness.url}/sign-in`);
  const lock = `vademecum-account-${alice.userId}`;
  const holder = await holds(device.page, lock);
  await device.page.getByRole("button", { name: `Open ${email} without signing in` }).click();
  const isWaiting = (name: string) =>
    navigator.locks.query().then(({ pending }) => pending!.some((lock) => lock.name === name));
  await soon(async () => expect(await device.page.evaluate(isWaiting, lock)).toBe(true));
  await device.page.reload(); // the choice is kept until the account is open
  await holder.close();
  await device.composer.waitFor();
  expect(await keys(device.rows("facts"))).toEqual(["after", "before"]);
  await device.page.reload(); // the choice is used once
  await device.composer.waitFor();
  expect(await keys(device.rows("facts"))).toEqual(["of Bob"]);
});

test("an account can be removed after the tab that has it open closes", async () => {
  const { page, user: alice } = shared; // the other account is signed in
  const { email } = await harness.request<{ email: string }>(alice, "/v1/me");
  await page.goto(`${harness.url}/sign-in`);
  await page.getByRole("button", { name: `Open ${email} without signing in` }).click();
  await composerOf(page).waitFor();
  expect(await shared.rows("facts")).toHaveLength(2);
  const other = await shared.open("/settings");
  await other.getByRole("button", { name: `Remove from this device: ${email}` }).click();
  const sure = other.getByRole("alert").getByRole("button", { name: "Remove from this device" });
  await sure.click();
  await other.getByText("Another tab of this browser still has this account open.").waitFor();
  expect(await shared.rows("facts")).toHaveLength(2);
  await page.close();
  await sure.click();
  await sure.waitFor({ state: "detached" });
  const names = async () => (await indexedDB.databases()).map(({ name }) => name);
  expect(`${await other.evaluate(names)}`).not.toContain(alice.userId);
});

test("a tab that does not run the sync asks with the chat's documents", async () => {
  await device.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await device.embedded(1);
  const [lease] = await device.rows("documents");
  const sessionId = await second.evaluate(async (documentId) => {
    const { vademecum } = window as any;
    const id = crypto.randomUUID();
    while ((await vademecum.state()).sync.kind !== "live") await new Promise((wait) => setTimeout(wait, 50));
    await vademecum.borrowInto(documentId, id);
    await vademecum.ask(id, "How much is the rent?");
    return id;
  }, lease!.id);
  await device.until(async () => {
    const [turn] = await device.rows("episodes", { selector: { sessionId } });
    return turn?.status === "done";
  });
  const [turn] = await device.rows("episodes", { selector: { sessionId } });
  expect(turn).toMatchObject({ model: "scripted", citations: [{ filename: "lease.txt" }] });
});

test("deferred questions are asked by only one tab", async () => {
  const before = answers().length;
  await harness.control("kill");
  const questions = Array.from({ length: WAITING }, (_, n) => `What about ${n}?`);
  await device.page.evaluate(async (questions) => {
    const { vademecum } = window as any;
    while ((await vademecum.state()).sync.kind === "live") await new Promise((wait) => setTimeout(wait, 50));
    const ids = await Promise.all(questions.map((question) => vademecum.ask("one-session", question)));
    for (;;) {
      const turns = await vademecum.rows("episodes", { selector: { sessionId: "one-session" } });
      if (turns.every(({ status }: { status: string }) => status === "done")) break;
      await new Promise((wait) => setTimeout(wait, 50));
    }
    for (const id of ids) await vademecum.deferQuestion(id, true);
  }, questions);
  await harness.control("start");
  await device.call("syncNow");
  await device.until(async () => {
    const turns = await device.rows("episodes", { selector: { sessionId: "one-session" } });
    return turns.every(({ aiResponse }) => aiResponse.startsWith("You asked"));
  });
  // A failed request may be repeated, but if both tabs asked, there would be two requests per question.
  expect(answers().length).toBeLessThan(before + 2 * questions.length);
});

test("an open tab continues a closed tab's uploads", async () => {
  const add = (name: string, buffer: Buffer) =>
    second.locator("input[type=file]").first().setInputFiles({ name, mimeType: "text/plain", buffer });
  await harness.control("kill");
  await device.untilSyncIs("offline");
  const tray = (page: Page) => page.getByRole("region", { name: "Uploads" });
  const notice = "Kept on this device until the server can read it";
  await add("utf32.txt", Buffer.from("fffe00004100000042000000", "hex")); // only the server can decode it
  await tray(second).getByText(notice).waitFor();
  const day = (n: number) => `Day ${n}. ${`The ferry carried ${n * 7} people over. `.repeat(30)}`;
  await add("logbook.txt", Buffer.from(Array.from({ length: 150 }, (_, n) => day(n)).join("\n\n")));
  await tray(second)
    .getByText(/^Preparing search: \d+ of \d+ passages$/u)
    .waitFor();
  const { uploads } = await device.state();
  expect(uploads.filter(({ name }) => name !== "lease.txt")).toEqual([]); // the first tab must not take over uploads while the second tab is open
  await second.close();
  await tray(device.page).getByText(notice).waitFor();
  const logbook = async () => (await device.rows("documents", { selector: { filename: "logbook.txt" } }))[0];
  await device.until(async () => (await logbook())?.status === "ready");
  const selector = { documentId: (await logbook())!.id };
  const blocks = await device.rows("vectorEmbeddings", { selector });
  expect(blocks.length).toBeGreaterThan(0);
  expect(blocks.every(({ embedding }) => embedding !== null)).toBe(true);
  await harness.control("start");
  await device.call("syncNow");
  await device.until(async () => (await device.waitingFiles()) === 0);
});
