/** The first seconds, while nothing is known of the server yet: it is asked all the same, and not for long. */

import { Device, harness } from "./app.ts";
import { withAssistant } from "./scripted_assistant.ts";

withAssistant([{ when: "rent", say: ["The rent is 940 euros."] }]);

let device: Device;
beforeAll(async () => {
  device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
});

/** What these requests ask is taken and never answered; everything else is. */
async function opened(silent: string[]) {
  const context = device.page.context();
  for (const pattern of silent) await context.route(pattern, () => {});
  const page = await device.open("/");
  await device.page.close();
  device.page = page;
  await page.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
}

/** Answers with the turn when it is over. */
async function turnOf(question: string) {
  const id = await device.page.evaluate(
    (question) => (window as any).vademecum.ask("one-session", question),
    question,
  );
  await device.until(async () => {
    const [turn] = await device.rows("episodes", { selector: { id } });
    return turn?.status === "done";
  });
  return (await device.rows("episodes", { selector: { id } }))[0]!;
}

test("a question is answered before the first sync", async () => {
  await opened(["**/v1/sync/**"]);
  expect(await turnOf("How much is the rent?")).toMatchObject({ model: "scripted" });
});

test("an unknown assistant state does not delay answers", async () => {
  await opened(["**/v1/sync/**", "**/v1/assistant"]);
  expect(await turnOf("How much is the rent?")).toMatchObject({ model: "quotes" });
});

test("a closed account sends nothing to other tabs", async () => {
  const second = await device.open("/");
  await second.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
  await second.evaluate(async () => {
    const { vademecum } = window as any;
    await vademecum.close();
    await vademecum.syncNow(); // as a button does that was pressed a moment before
  });
  await second.close();
});
