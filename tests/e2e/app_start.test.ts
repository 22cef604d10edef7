/** Questions in the first seconds, before the state of the server is known. */

import { Device, harness, composerOf } from "./app.ts";
import { withAssistant } from "./scripted_assistant.ts";

withAssistant([{ when: "rent", say: ["The rent is 940 euros."] }]);

let device: Device;
beforeAll(async () => {
  device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
});

/** Reopen the page while requests that match these patterns are never answered. */
async function opened(silent: string[]) {
  const context = device.page.context();
  for (const pattern of silent) await context.route(pattern, () => {});
  const page = await device.open("/");
  await device.page.close();
  device.page = page;
  await composerOf(page).waitFor();
}

/** Ask a question and return its turn when it is done. */
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

test("the assistant answers a question before the first sync", async () => {
  await opened(["**/v1/sync/**"]);
  expect(await turnOf("How much is the rent?")).toMatchObject({ model: "scripted" });
});

test("an unknown assistant state does not delay quotation answers", async () => {
  await opened(["**/v1/sync/**", "**/v1/assistant"]);
  expect(await turnOf("How much is the rent?")).toMatchObject({ model: "quotes" });
});

test("syncNow after the account was closed does not fail", async () => {
  const second = await device.open("/");
  await second.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
  await second.evaluate(async () => {
    const { vademecum } = window as any;
    await vademecum.close();
    await vademecum.syncNow(); // as if a button was pressed just before the account closed
  });
  await second.close();
});
