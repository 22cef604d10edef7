/** A question about a file that was just added offline waits for the file. */

import { violations } from "./accessibility.ts";
import { Device, harness, withServer } from "./app.ts";
import { onServer, push, session } from "./accounts.ts";

withServer();

/** A text that takes a while to embed. */
const LOGBOOK = Array.from({ length: 400 }, (_, day) =>
  `On day ${day} the ferry carried ${day * 7} people over the sound. `.repeat(20),
).join("\n\n");

let device: Device;
beforeAll(async () => {
  device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
  await device.modelReady();
  await device.setOffline(true);
  await device.reopen();
  device.page.setDefaultTimeout(60_000);
});

test("a question asked during an upload is answered from the file", async () => {
  const { page } = device;
  await device.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await device.ask("How much is the rent?");
  await page.getByText("940 euros a month").waitFor();
  const [turn] = await device.rows("episodes");
  expect(turn).toMatchObject({ status: "done", citations: [{ filename: "lease.txt" }] });
});

test("waiting for a file can be skipped", async () => {
  const { page } = device;
  await page.getByRole("link", { name: "New chat" }).first().click();
  await device.drop("logbook.txt", LOGBOOK);
  await device.ask("How much is the rent?");
  await page.getByText("Reading logbook.txt first. The answer will follow.").waitFor();
  await page.getByRole("button", { name: "Answer without it" }).click();
  const selector = { sessionId: page.url().split("/s/")[1]! };
  const turn = async () => (await device.rows("episodes", { selector }))[0]!;
  await device.until(async () => (await turn()).status === "done");
  // The text may have been stored meanwhile. Then the answer searches it and calls it partly ready.
  const names = (await turn()).notices!.flatMap(({ code, names }) =>
    code.startsWith("files_") ? names! : [],
  );
  expect(names).toEqual(["logbook.txt"]);
  await page.getByText(/(Answered without logbook\.txt|logbook\.txt was only partly ready)/u).waitFor();
  const { uploads } = await device.state();
  expect(uploads.find(({ name }) => name === "logbook.txt")!.stage).not.toBe("done"); // the answer did not wait for it
});

test("a reopened page answers the question that waits for a file", async () => {
  const { page } = device;
  await page.getByRole("link", { name: "New chat" }).first().click();
  await device.drop("voyage.txt", LOGBOOK.replaceAll("ferry", "barge"));
  await device.ask("How many people did the barge carry on day 3?");
  await page.getByText("Reading voyage.txt first. The answer will follow.").waitFor();
  expect(await violations(page)).toEqual([]);
  const selector = { sessionId: page.url().split("/s/")[1]! };
  await device.reopen();
  device.page.setDefaultTimeout(60_000);
  await device.until(async () => (await device.rows("episodes", { selector }))[0]!.status === "done");
  const [turn, ...others] = await device.rows("episodes", { selector });
  expect(others).toEqual([]);
  expect(turn!.aiResponse).toContain("the barge carried");
});

test.each([
  ["the delete has arrived", true],
  ["the delete may not have arrived", false],
])("an uploaded file is kept although its chat was deleted: %s", async (_, isKnown) => {
  const device = await Device.of(await harness.user());
  const { page, user } = device;
  const sessions = async () => (await device.rows("sessions")).length;
  await push(user, "sessions", session("gone", "A short one"));
  await device.until(async () => (await device.state()).sync.kind === "live" && (await sessions()) === 1);
  let isGone = async () => {};
  await page.context().route("**/v1/documents", async (route) => {
    await isGone();
    await route.fallback();
  });
  isGone = async () => {
    isGone = async () => {};
    await harness.request(user, "/v1/sessions/gone", { method: "DELETE" });
    if (isKnown) await device.until(async () => (await sessions()) === 0);
  };
  await page.evaluate(() => {
    const file = new File(["The ferry leaves at noon."], "ferry.txt");
    void window.vademecum.addFiles([file], "gone");
  });
  const isFree = (row?: Record<string, any>) => row?.["status"] === "ready" && !row["activeSessions"].length;
  await device.until(async () => isFree((await device.rows("documents"))[0]));
  const [document] = await device.rows("documents");
  await device.until(async () => isFree(await onServer(user, "documents", document!.id)));
  expect(await sessions()).toBe(0);
  expect(device.browser.requests.filter((url) => url.endsWith("/v1/documents")).length).toBeGreaterThan(0);
});
