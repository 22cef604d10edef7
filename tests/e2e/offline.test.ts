/** The app works offline, and its offline changes sync to another device later. */

import { readdirSync, readFileSync } from "node:fs";
import type { NewUser } from "../sync/harness.ts";
import { Device, harness, withServer } from "./app.ts";
import { MODELS } from "./browser.ts";

let user: NewUser;
let device: Device;

withServer({ VADEMECUM_MODELS: MODELS });
beforeAll(async () => {
  user = await harness.user();
  device = await Device.of(user, { installs: true });
  await device.installed();
  await device.modelReady(); // wait for the download
});

const LEASE = `# Lease\n\nThe rent of the flat in Harbour Street is 940 euros a month, due on the third working day.\n\nNotice is three months.\n`;
const FERRY = "The ferry leaves the northern pier at nine.";

const ASSETS = "server/vademecum/web/assets";
const [MODEL_WORKER] = readdirSync(ASSETS).filter(
  (name) => /^worker-.*\.js$/u.test(name) && readFileSync(`${ASSETS}/${name}`, "utf8").includes("ort-wasm"),
) as [string];

/** Return whether the model runs in the page. */
const runs = ({ page }: Device) => page.workers().some((worker) => worker.url().includes(MODEL_WORKER));

test("the embedding model starts only when the device is offline", async () => {
  await device.drop("lease.md", LEASE, "text/markdown");
  await device.embedded(1);
  await device.reopen();
  const ran: string[] = [];
  device.page.on("worker", (worker) => ran.push(worker.url()));
  await device.page.reload();
  await device.modelReady();
  await device.untilSyncIs("live");
  expect(ran.length).toBeGreaterThan(0);
  expect(ran.filter((url) => url.includes(MODEL_WORKER))).toEqual([]);
  expect(runs(device)).toBe(false);

  await device.setOffline(true);
  await device.call("syncNow"); // notice the loss: an open stream survives the emulation
  await device.until(async () => runs(device)); // before any question
  await device.page.reload();
  await device.ask("What does housing cost me?"); // a question that shares no words with the lease
  await device.page.getByText("940 euros a month").waitFor();
  await device.page.getByText("Quoted from your documents").waitFor();
  await device.ask("And how much is the heating?");
  await device.page
    .getByText(/^Answered without an assistant/u)
    .nth(1)
    .waitFor();
  // The current state of the assistant is shown only once.
  expect(await device.page.getByText(/No assistant is set up\./u).count()).toBe(1);
});

test("a document embedded offline syncs with its vectors", async () => {
  const other = await Device.of(user);
  await device.setOffline(true);
  await device.page.getByRole("link", { name: "New chat" }).first().click();
  await device.drop("ferry.txt", FERRY);
  await device.embedded(2);
  await device.ask("When does the ferry leave?");
  await device.page.getByText("northern pier at nine").waitFor();
  const isFerry = ({ filename }: { filename?: string }) => filename === "ferry.txt";
  const { id: documentId } = (await device.rows("documents")).find(isFerry)!;
  const [vectors] = await device.rows("vectorEmbeddings", { selector: { documentId } });
  await device.setOffline(false);
  await other.embedded(2);
  const blocks = await harness.liveRows(user, "vectorEmbeddings");
  const block = blocks.find((block) => block["documentId"] === documentId)!;
  expect(block["embedding"]).not.toBeNull();
  expect(block["updatedAt"]).toBe(vectors!.updatedAt); // the server did not embed it again
  await other.page.getByRole("link", { name: "When does the ferry leave?" }).click();
  await other.page.getByText("northern pier at nine").waitFor();
});
