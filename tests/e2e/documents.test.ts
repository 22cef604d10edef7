/** Documents: adding, listing, reading, using in chats and deleting, also with a failing server and at the limit. */

import type { Locator, Page } from "playwright-core";
import { compareStrings } from "../../web/src/lib/compareStrings.ts";
import type { DocumentDoc } from "../../web/src/core/schema/rows.ts";
import type { NewUser } from "../sync/harness.ts";
import { violations } from "./accessibility.ts";
import { Device, harness, withOwnServer, composerOf } from "./app.ts";
import { NEW_DOCUMENT_FIELDS, NEW_SESSION_FIELDS, syncPath } from "../sync/wire.ts";

const AT = "2026-03-01T00:00:00.000Z";
const TIDES = "About the tides (sample).md";

let ada: NewUser;
let phone: Device;
let laptop: Device;

withOwnServer();
beforeAll(async () => {
  ada = await harness.user();
  const outlives = { installs: true }; // the laptop must load the parser after a server crash
  [phone, laptop] = await Promise.all([Device.of(ada), Device.of(ada, outlives)]);
  await laptop.installed();
  for (const { page } of [phone, laptop]) page.setDefaultTimeout(60_000);
  await phone.page.setViewportSize({ width: 360, height: 740 });
});

/** Show another page of the app without loading it. */
async function go(page: Page, path: string): Promise<void> {
  await page.evaluate((path) => history.pushState(null, "", path), path);
}

function row(page: Page, name: string): Locator {
  return page.getByRole("listitem").filter({ has: page.getByRole("link", { name, exact: true }) });
}

function tray(page: Page): Locator {
  return page.getByRole("region", { name: "Uploads" });
}

/** Drop a file on the window. */
async function dropFile(page: Page, name: string, content: string): Promise<void> {
  await page.evaluate(
    ([name, content]) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([content], name));
      for (const type of ["dragenter", "dragover", "drop"]) {
        document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
      }
    },
    [name, content] as const,
  );
}

function push(user: NewUser, collection: string, rows: object[]): Promise<unknown[]> {
  const batch = rows.map((row) => ({
    newDocumentState: { createdAt: AT, updatedAt: AT, _deleted: false, ...row },
  }));
  return harness.request(user, `${syncPath(collection)}/push`, {
    method: "POST",
    body: JSON.stringify(batch),
  });
}

async function settled(device: Device): Promise<void> {
  await device.until(async () => {
    const { sync } = await device.state();
    return sync.kind === "live" && sync.waiting === 0;
  });
}

test("the first visit offers a sample document", async () => {
  const { page } = phone;
  const things = page.getByRole("main").getByRole("listitem");
  const sample = page.getByRole("button", { name: "Add a sample document" });
  await go(page, "/documents");
  await page.getByRole("heading", { name: "No documents yet" }).waitFor();
  expect(await things.count()).toBe(3);
  await phone.expectAccessible();
  await go(page, "/");
  await page.getByRole("heading", { name: "What would you like to know?" }).waitFor();
  await sample.waitFor();
  expect(await things.count()).toBe(3);
  const composer = composerOf(page);
  const [shown, below] = await Promise.all([sample.boundingBox(), composer.boundingBox()]);
  expect(shown!.y + shown!.height).toBeLessThanOrEqual(below!.y); // visible on a phone without scrolling
  await page.getByText("on your devices and on your server").waitFor();
  await phone.expectAccessible();
  await sample.click();
  await tray(page).getByText("1 file added").waitFor();
  expect(await tray(page).getByRole("listitem").count()).toBe(0); // the list is collapsed
  await tray(page).getByRole("button", { name: "Show files" }).click();
  await tray(page).getByText("Done").waitFor();
  await sample.waitFor({ state: "detached" }); // the page shows the button only without documents
  await page.getByText("Ask a question, or drop a file here.").waitFor();
  const [{ activeSessions }] = (await phone.rows("documents")) as [DocumentDoc];
  expect(new URL(page.url()).pathname).toBe(`/s/${activeSessions.join()}`);
  await go(page, "/documents");
  expect(await tray(page).innerText()).toContain("not the file itself.");
  await row(page, TIDES).getByText("On this device and the server").waitFor();
  await phone.expectAccessible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
});

test("an identical file is stored once", async () => {
  const { page } = laptop;
  await laptop.embedded(1);
  const [stored] = await laptop.rows("documents");
  const blocks = await laptop.rows("vectorEmbeddings", { selector: { documentId: stored!.id } });
  const text = blocks.flatMap(({ chunks }) => chunks.map((chunk) => chunk.text)).join("\n\n");
  await go(page, "/s/tides");
  await dropFile(page, "tides.md", text);
  await tray(page).getByText("1 file added").waitFor(); // its bytes differ from the sample's, so it is a new document
  await dropFile(page, "tides again.md", text);
  await tray(page).getByText("Already in your documents, now in this chat").waitFor();
  await tray(page).getByRole("button", { name: "Clear" }).click();
  await tray(page).waitFor({ state: "detached" });
  await settled(laptop);
  expect((await harness.liveRows(ada, "documents")).length).toBe(2);
  const [, dropped] = await laptop.rows("documents", { sort: [{ id: "asc" }] });
  expect(dropped!.activeSessions).toEqual(["tides"]); // the chat on which it was dropped
});

test("the reader scrolls to a cited passage", async () => {
  const { page } = laptop;
  const id = "paged";
  const chunks = Array.from({ length: 480 }, (_, index) => ({
    index,
    start: index * 1_000,
    text: `Passage ${index}. ${"The sea rises and falls. ".repeat(39)}`.slice(0, 998),
    page: Math.floor(index / 4) + 1,
    tokens: 200,
  }));
  const blocks = Array.from({ length: 30 }, (_, block) => ({
    ...{ id: `${id}.${block}`, documentId: id, block, textHash: "", model: "", dims: 0, embedding: null },
    chunks: chunks.slice(block * 16, block * 16 + 16),
  }));
  await push(ada, "documents", [seeded(ada, id, { chunkCount: 480, pageCount: 120, status: "ready" })]);
  await push(ada, "vectorEmbeddings", blocks);
  await laptop.until(async () => (await laptop.rows("vectorEmbeddings")).length >= 30);
  await go(page, `/documents/${id}?passage=25/403`);
  const mark = page.locator("mark");
  await mark.waitFor();
  expect(await mark.innerText()).toMatch(/^Passage 403\./u);
  await laptop.until(async () => isInView(page, mark));
  const jump = page.getByRole("combobox", { name: "Go to page" });
  await jump.selectOption("Page 7");
  await laptop.until(async () => isInView(page, page.getByRole("heading", { name: "Page 7", exact: true })));
  await laptop.expectAccessible();
});

async function isInView(page: Page, what: Locator): Promise<boolean> {
  const box = await what.boundingBox();
  return box !== null && box.y >= 52 && box.y < page.viewportSize()!.height;
}

test("a document added to two chats concurrently stays in both", async () => {
  await push(
    ada,
    "sessions",
    ["one", "two"].map((id) => ({
      id,
      title: `Conversation ${id}`,
      mode: "analysis",
      ...NEW_SESSION_FIELDS,
    })),
  );
  await Promise.all([phone, laptop].map((device) => waitForSession(device, "two")));
  for (const { page } of [phone, laptop]) {
    await go(page, "/documents/paged");
    await page.getByRole("combobox", { name: "Choose a chat" }).waitFor();
  }
  await Promise.all([phone.setOffline(true), laptop.setOffline(true)]);
  await lendDocuments(phone, "Conversation one");
  await lendDocuments(laptop, "Conversation two");
  await Promise.all([phone.setOffline(false), laptop.setOffline(false)]);
  for (const device of [phone, laptop]) {
    await device.until(async () => {
      const [found] = await device.rows("documents", { selector: { id: "paged" } });
      return found!.activeSessions.toSorted(compareStrings).join() === "one,two" && found!.accessCount === 0;
    });
  }
  await laptop.page.getByRole("button", { name: "Remove from Conversation one" }).click();
  await phone.until(async () => {
    const [found] = await phone.rows("documents", { selector: { id: "paged" } });
    return found!.activeSessions.join() === "two";
  });
});

async function waitForSession(device: Device, sessionId: string): Promise<void> {
  await device.until(async () => (await device.rows("sessions")).some(({ id }) => id === sessionId));
}

async function lendDocuments({ page }: Device, title: string): Promise<void> {
  await page.getByRole("combobox", { name: "Choose a chat" }).selectOption({ label: title });
  await page.getByRole("button", { name: "Add to chat" }).click();
  await page.getByRole("button", { name: `Remove from ${title}` }).waitFor();
}

test("deleting a document keeps its facts", async () => {
  await push(ada, "facts", [
    { ...{ id: "f", key: "sea", value: "rises", sourceDocumentId: "paged" }, ...FACT },
    { ...{ id: "g", key: "sea", value: "falls" }, ...FACT },
  ]);
  await phone.until(async () => (await phone.rows("facts")).length === 2);
  const { page } = phone;
  await go(page, "/documents");
  await page.getByRole("searchbox").fill("PAGED");
  const found = page.getByRole("list", { name: "Documents" }).getByRole("listitem");
  await expect.poll(() => found.count()).toBe(1);
  await page.getByRole("button", { name: "Delete paged.txt" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete paged.txt?" });
  await dialog.getByText("1 fact from it stays, marked “Source removed”").waitFor();
  await phone.expectAccessible();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await laptop.page.getByText("This document is not on this device.").waitFor();
  await laptop.until(async () =>
    (await laptop.rows("vectorEmbeddings")).every((b) => b.documentId !== "paged"),
  );
  const facts = await laptop.rows("facts", { sort: [{ id: "asc" }] });
  expect(facts.map(({ id, sourceRemoved }) => [id, sourceRemoved])).toEqual([
    ["f", true],
    ["g", false],
  ]);
});

const FACT = { sourceRemoved: false, confidence: 1, confirmed: true };

test("a canceled upload is deleted from the server", async () => {
  const { page } = laptop;
  await settled(laptop);
  await go(page, "/documents");
  const tombstoneCount = async () =>
    (await harness.rows(ada, "documents")).filter(({ _deleted }) => _deleted).length;
  const before = await tombstoneCount();
  let answered = (): void => {};
  const stored = new Promise<void>((resolve) => (answered = resolve));
  await page.route("**/v1/documents", async (route) => {
    await route.fetch(); // the file is stored, but the response never arrives
    answered();
  });
  await dropFile(page, "unwanted.md", "Never mind.");
  await stored;
  expect(await violations(page)).toEqual([]);
  await tray(page).getByRole("button", { name: "Cancel unwanted.md" }).click();
  await tray(page).getByText("Canceled. Nothing was stored.").waitFor();
  await page.unroute("**/v1/documents");
  await laptop.until(async () => (await tombstoneCount()) > before);
  expect((await harness.liveRows(ada, "documents")).map(({ filename }) => filename)).not.toContain(
    "unwanted.md",
  );
});

test("focus stays in the finished upload list", async () => {
  const { page } = laptop;
  await settled(laptop);
  await go(page, "/documents");
  for (const clear of await tray(page).getByRole("button", { name: "Clear" }).all()) await clear.click();
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => (answer = resolve));
  await page.route("**/v1/documents", async (route) => {
    if (route.request().postDataBuffer()?.includes("quick.md")) return route.continue();
    await answered;
    await route.continue();
  });
  await dropFile(page, "quick.md", "The first is here soon.");
  const added = tray(page).getByRole("link", { name: "quick.md" });
  await dropFile(page, "slow.md", "The second takes its time.");
  await added.focus();
  answer();
  await tray(page)
    .getByText(/^[0-9]+ files? added$/)
    .waitFor();
  expect(await added.evaluate((link) => link === document.activeElement)).toBe(true);
  await tray(page).getByRole("button", { name: "Clear" }).focus();
  await added.waitFor({ state: "detached" });
  await page.unroute("**/v1/documents");
  await tray(page).getByRole("button", { name: "Clear" }).click();
});

test("a server crash after an upload does not duplicate the document", async () => {
  const { page } = laptop;
  await settled(laptop);
  await harness.control("killInsteadOfResponse", { to: "/v1/documents" });
  await dropFile(page, "ferry.md", "The ferry leaves at nine from the northern pier.");
  const isFerry = ({ filename }: { filename?: string }) => filename === "ferry.md";
  await laptop.until(async () => (await laptop.rows("documents")).some(isFerry)); // parsed on this device
  await harness.control("start");
  await laptop.call("syncNow"); // reconnect without a delay
  await settled(laptop);
  await laptop.until(
    async () => (await harness.liveRows(ada, "documents")).find(isFerry)?.["status"] === "ready",
  );
  expect((await harness.liveRows(ada, "documents")).filter(isFerry).length).toBe(1);
  await phone.until(async () => (await phone.rows("documents")).filter(isFerry).length === 1);
  const laptopRows = await laptop.rows("documents");
  expect(laptopRows.filter(isFerry).length).toBe(1);
  const { id } = laptopRows.find(isFerry)!;
  const blocks = (await harness.liveRows(ada, "vectorEmbeddings")).filter(
    (block) => block["documentId"] === id,
  );
  expect(blocks.map((block) => block["chunks"].length)).toEqual([1]);
});

test("the 101st document stays on the device until others are deleted", async () => {
  const bob = await harness.user();
  const documents = Array.from({ length: 100 }, (_, n) =>
    seeded(bob, `d${String(n).padStart(2, "0")}`, { activeSessions: n < 95 ? ["s"] : [] }),
  );
  await push(bob, "sessions", [{ id: "s", title: "All of it", mode: "analysis", ...NEW_SESSION_FIELDS }]);
  await push(bob, "documents", documents);
  const tablet = await Device.of(bob);
  const { page } = tablet;
  await tablet.until(async () => (await tablet.rows("documents")).length === 100);
  await go(page, "/documents");
  await page.getByText("100 of 100 documents").first().waitFor();
  await page.getByText("You have reached the limit of your account.").waitFor();
  await page.getByText("JIGGA account").waitFor();

  await page.getByRole("searchbox").fill("lease"); // shorten the list, because axe takes long for 100 rows
  await dropFile(page, "lease.md", "The lease ends in March.");
  const refused = row(page, "lease.md");
  await refused
    .getByText(/You have 100 documents, which is the maximum\. lease\.md stays on this device\./u)
    .waitFor();
  await page.getByRole("region", { name: "Storage" }).getByText("1 document on this device only").waitFor();
  await page.getByRole("link", { name: "Documents" }).getByText("100 / 100").waitFor(); // the link shows the same count
  await settled(tablet);
  expect((await harness.liveRows(bob, "documents")).length).toBe(100);
  await tablet.expectAccessible();

  await refused.getByRole("button", { name: "Choose what to delete" }).click();
  await page.getByText("5 selected").waitFor();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Delete 5 documents?" });
  await dialog.getByText("d95.txt").waitFor();
  await dialog.getByRole("button", { name: "Delete 5 documents" }).click();
  await page.getByText("95 of 100 documents").first().waitFor();
  await settled(tablet);
  const there = (await harness.liveRows(bob, "documents")).map(({ id }) => id).toSorted(compareStrings);
  expect(there).toEqual(documents.slice(0, 95).map(({ id }) => id));

  await refused.getByRole("button", { name: "Keep on this device: lease.md" }).click();
  await refused.getByText(/You have 100 documents/u).waitFor({ state: "detached" });
  await page.getByText("1 document on this device only").first().click();
  const details = page.getByRole("dialog", { name: "Sync" });
  await details.getByText("lease.md", { exact: true }).waitFor();
  // The rejection was dismissed.
  expect(await details.getByRole("button", { name: "Keep on this device" }).count()).toBe(0);
  await page.keyboard.press("Escape");
  await refused.getByRole("button", { name: "Retry: lease.md" }).click();
  await refused.getByText("On this device and the server").waitFor();
  await tablet.until(async () => {
    const [lease] = (await harness.liveRows(bob, "documents")).filter(
      ({ filename }) => filename === "lease.md",
    );
    return lease?.["status"] === "ready";
  });
});

function seeded(user: NewUser, id: string, more: object) {
  return {
    ...{ id, userId: user.userId, originSessionId: "", activeSessions: [], accessCount: 0 },
    ...{ lastAccessedAt: AT, filename: `${id}.txt`, mimeType: "text/plain", size: 10 },
    ...{ contentHash: "0".repeat(64), chunkCount: 1, status: "ready", ...NEW_DOCUMENT_FIELDS, ...more },
  };
}
