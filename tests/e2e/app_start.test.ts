/** The app's first seconds, while the server's state is unknown, and a start with a server that never responds. */

import { FaultProxy } from "../sync/faultProxy.ts";
import { Device, harness, composerOf } from "./app.ts";
import { withAssistant } from "./scripted_assistant.ts";

withAssistant([{ when: "rent", say: ["The rent is 940 euros."] }]);

let device: Device;
beforeAll(async () => {
  device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
});

/** Reopen the page while requests that match these patterns are never answered, until the test ends. */
async function opened(silent: string[]) {
  const context = device.page.context();
  onTestFinished(() => context.unrouteAll());
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

test("the app opens while the server is silent", async () => {
  const page = await device.page.context().newPage();
  onTestFinished(async () => {
    await page.close();
    await device.page.context().unrouteAll();
  });
  await page.context().route("**/v1/me", () => {}); // accepted but never answered
  await page.goto(harness.url);
  await composerOf(page).waitFor();
});

test("the first question does not wait for pending requests", async () => {
  const proxy = await FaultProxy.open(harness);
  proxy.stall = (path) => path.endsWith(".wasm"); // the runtime of the model does not arrive either
  const first = await Device.of(await harness.user(), { origin: proxy.url }); // nothing is cached yet
  await first.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await first.embedded(1);
  await first.modelReady();
  // Each pending request takes one of the browser's six connections.
  proxy.stall = (path) => path.startsWith("/v1/") || path.endsWith(".wasm");
  await first.page.reload();
  await first.page.locator('[data-status="starting"]').waitFor();
  await first.ask("How much is the rent?");
  await first.page.getByText("Quoted from your documents").waitFor({ timeout: 20_000 }); // the idle timeout is 30 s
  await first.stop();
  proxy.close();
});

test("a file added on a signed-out device becomes a document", async () => {
  await device.reopen();
  await device.untilSyncIs("live");
  await device.page.context().clearCookies();
  await device.drop("lease.txt", "The rent of the flat in Harbour Street is 940 euros a month.");
  await device.until(async () => (await device.state()).uploads.some(({ stage }) => stage !== "waiting"));
  await device.until(async () => (await device.rows("documents")).length === 1);
});
