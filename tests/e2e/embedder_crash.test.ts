/** The model's worker crashes: questions and uploads continue without it. */

import { Device, harness, withServer } from "./app.ts";

withServer();

/** Crash the embedder's workers as when memory runs out. The app's own worker survives the error. */
async function killWorkers({ page }: Device): Promise<void> {
  for (const worker of page.workers()) {
    await worker.evaluate(() => {
      setTimeout(() => {
        throw new Error("out of memory");
      });
    });
  }
}

test("a question is answered after the embedding model crashed", async () => {
  const device = await Device.of(await harness.user());
  await device.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await device.embedded(1);
  await device.modelReady();
  await device.ask("What does it cost?"); // this starts the model
  await device.page.getByText("Quoted from your documents").waitFor();
  await killWorkers(device);
  await device.ask("How much is the rent?");
  await device.until(async () => {
    const done = (await device.rows("episodes")).filter(({ status }) => status === "done");
    return done.length === 2;
  });
  const [, turn] = await device.rows("episodes", { sort: [{ id: "asc" }] });
  expect(turn!.aiResponse).toContain("940 euros");
});

test("embedding interrupted by a crash is completed on retry", async () => {
  const device = await Device.of(await harness.user());
  await device.modelReady();
  await device.page.context().route("**/v1/**", (route) => route.abort());
  await device.call("syncNow");
  await device.untilSyncIs("offline");
  const day = (n: number) => `Day ${n}. ${`The ferry carried ${n * 7} people over. `.repeat(30)}`;
  await device.drop("logbook.txt", Array.from({ length: 700 }, (_, n) => day(n)).join("\n\n"));
  const tray = device.page.getByRole("region", { name: "Uploads" });
  await tray.getByText(/^Preparing search: [\d,]+ of [\d,]+ passages$/u).waitFor();
  await killWorkers(device);
  await tray.getByText("The document was added, and search matches its words.").waitFor();
  const lacking = async () =>
    (await device.rows("vectorEmbeddings")).filter((block) => !block.embedding).length;
  expect(await lacking()).toBeGreaterThan(0);
  await tray.getByRole("button", { name: "Retry: logbook.txt" }).click();
  await device.until(async () => (await device.rows("documents"))[0]?.status === "ready");
  expect(await lacking()).toBe(0);
});
