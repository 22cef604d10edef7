/** The model runs out of memory, or is killed: what it did is missed, and nothing hangs. */

import { Device, harness, withServer } from "./app.ts";

withServer();

test("a question is answered by words when the model is gone", async () => {
  const device = await Device.of(await harness.user());
  await device.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await device.embedded(1);
  await device.modelReady();
  await device.ask("What does it cost?"); // which starts it
  await device.page.getByText("Quoted from your documents").waitFor();
  for (const worker of device.page.workers()) {
    await worker.evaluate(() => {
      setTimeout(() => {
        throw new Error("out of memory");
      });
    });
  }
  await device.ask("How much is the rent?");
  await device.until(async () => (await device.rows("episodes")).every(({ status }) => status === "done"));
  const [, turn] = await device.rows("episodes", { sort: [{ id: "asc" }] });
  expect(turn!.aiResponse).toContain("940 euros");
});
