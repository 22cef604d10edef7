/** Files that are added offline: parsing, resuming after a closed page, and uploading later. */

import type { Locator, Page } from "playwright-core";
import type { NewUser } from "../sync/harness.ts";
import { violations } from "./accessibility.ts";
import { Device, harness, library, withServer } from "./app.ts";
import { MODELS } from "./browser.ts";

/** The number of chapters: more than a block of 16 chunks, so that work remains when the page is closed. */
const CHAPTERS = 28;
const PDF = "legal-aid-retainer.pdf"; // two pages

let ada: NewUser;
let phone: Device;
let laptop: Device;

withServer({ VADEMECUM_MODELS: MODELS });
beforeAll(async () => {
  ada = await harness.user();
  [phone, laptop] = await Promise.all([Device.of(ada), Device.of(ada, { installs: true })]);
  await laptop.installed();
  await laptop.modelReady();
  await phone.page.setViewportSize({ width: 360, height: 740 });
});

function tray(page: Page): Locator {
  return page.getByRole("region", { name: "Uploads" });
}

/** Open the cited passage and return its text. */
async function passage(device: Device): Promise<string> {
  const { page } = device;
  await page
    .getByRole("button", { name: `${PDF}, page 2` })
    .first()
    .click();
  const panel = page.getByRole("dialog", { name: PDF });
  await panel.getByText("Page 2").waitFor();
  const marked = await panel.locator("mark").innerText();
  await device.expectAccessible();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  return marked;
}

test("a PDF added offline is searched offline and syncs its vectors", async () => {
  await laptop.setOffline(true);
  await laptop.reopen(); // from here on the app, the PDF parser and the model come from the browser
  await laptop.drop(PDF, library(`documents/${PDF}`));
  await laptop.embedded(1);
  await laptop.ask("For how many years is email retained?");
  expect(await passage(laptop)).toContain("electronic communications (email) for two (2) years");
  const laptopBlocks = await laptop.rows("vectorEmbeddings", { sort: [{ id: "asc" }] });

  await laptop.setOffline(false);
  await phone.embedded(1);
  const [phoneRow] = await phone.rows("documents");
  expect(phoneRow).toMatchObject({ filename: PDF, pageCount: 2, status: "ready" });
  const phoneBlocks = await phone.rows("vectorEmbeddings", { sort: [{ id: "asc" }] });
  expect(phoneBlocks.map(({ id, embedding, updatedAt }) => [id, embedding, updatedAt])).toEqual(
    laptopBlocks.map(({ id, embedding, updatedAt }) => [id, embedding, updatedAt]), // they were not embedded again
  );
  await phone.until(async () => (await phone.rows("sessions")).length > 0);
  const [session] = await phone.rows("sessions");
  await phone.page.goto(`${harness.url}/s/${session!.id}`);
  expect(await passage(phone)).toContain("electronic communications (email) for two (2) years");
  await phone.stop();
});

test("a reopened page resumes embedding offline", async () => {
  const chapters = Array.from(
    { length: CHAPTERS },
    (_, n) => `Chapter ${n}. ${`On day ${n} the ferry carried ${n * 7} people over. `.repeat(20)}`,
  );
  await laptop.setOffline(true);
  await laptop.drop("logbook.txt", chapters.join("\n\n"));
  const embedding = async () => {
    const { uploads } = await laptop.state();
    return uploads.filter((task) => task.stage === "embedding").find(({ name }) => name === "logbook.txt");
  };
  await tray(laptop.page)
    .getByText(/^Preparing search: \d+ of \d+ passages$/u)
    .waitFor();
  expect(await violations(laptop.page)).toEqual([]);
  await laptop.until(async () => ((await embedding())?.done ?? 0) >= 16);
  const selector = { documentId: (await embedding())!.documentId };
  await laptop.reopen();
  const [before] = await laptop.rows("documents", { selector: { id: selector.documentId } });
  expect(before!.status).toBe("pending");
  const embedded = (await laptop.rows("vectorEmbeddings", { selector })).filter((block) => block.embedding);
  expect(embedded.length).toBeGreaterThan(0);

  await laptop.until(async () => {
    const [row] = await laptop.rows("documents", { selector: { id: selector.documentId } });
    return row!.status === "ready";
  });
  await tray(laptop.page).getByText("1 file added").waitFor();
  const blocks = await laptop.rows("vectorEmbeddings", { selector });
  expect(blocks.reduce((sum, { chunks }) => sum + chunks.length, 0)).toBe(before!.chunkCount);
  expect(before!.chunkCount).toBeGreaterThanOrEqual(CHAPTERS);
  expect(blocks.every(({ embedding }) => embedding !== null)).toBe(true);
  for (const { id, updatedAt } of embedded)
    expect(blocks.find((block) => block.id === id)!.updatedAt).toBe(updatedAt); // no block was embedded twice
  await laptop.setOffline(false);
});

test("a text of unknown encoding waits for the server", async () => {
  const letter =
    "Пристань открыта каждый день с девяти часов утра. Паром отходит в полдень и возвращается вечером. ";
  const russian = Buffer.from(
    [...letter.repeat(8)].map((one) => (one >= "А" ? one.charCodeAt(0) - 0x410 + 0xc0 : one.charCodeAt(0))),
  ); // encoded as windows-1251, which no byte order mark announces
  await laptop.setOffline(true);
  await laptop.untilSyncIs("offline");
  await laptop.drop("паром.txt", russian);
  const waiting = "Kept on this device until the server can read it";
  await tray(laptop.page).getByText(waiting).waitFor();
  await tray(laptop.page).getByText("1 file waiting for the server").waitFor();
  await laptop.expectAccessible();
  await laptop.reopen();
  await tray(laptop.page).getByText(waiting).waitFor();
  await laptop.setOffline(false);
  const isFerry = ({ filename, status }: { filename?: string; status?: string }) =>
    filename === "паром.txt" && status === "ready";
  await laptop.until(async () => (await laptop.rows("documents")).some(isFerry));
  const { id } = (await laptop.rows("documents")).find(isFerry)!;
  const blocks = () => laptop.rows("vectorEmbeddings", { selector: { documentId: id } });
  await laptop.until(async () => (await blocks()).length > 0); // collections sync in parallel
  const [block] = await blocks();
  expect(block!.chunks[0]!.text).toContain("Паром отходит в полдень");
  await laptop.until(async () => (await laptop.waitingFiles()) === 0);
});
