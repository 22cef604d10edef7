/** An import includes the facts and memories of its turns, so the server does not extract from these turns again. */

import { Device, harness } from "./app.ts";
import { push, session } from "./accounts.ts";
import { turn } from "./sample_memory.ts";
import { withAssistant } from "./scripted_assistant.ts";
import type { JobList } from "../../web/src/backend/memory/jobs.ts";
import type { NewUser } from "../sync/harness.ts";

const DAILY = 6;
const CITY = { key: "user.city", value: "Bern", confidence: 0.8 };
withAssistant(
  [{ when: "", say: [JSON.stringify({ facts: [CITY], memories: ["Ada lives in Bern."] })] }],
  DAILY,
);

const extractedRows = async (user: NewUser) =>
  (await Promise.all(["facts", "memories"].map((name) => harness.liveRows(user, name)))).flat();
const jobs = (user: NewUser) => harness.request<JobList>(user, "/v1/jobs");
const done = async (user: NewUser) => (await jobs(user)).counts.done;
const texts = async (user: NewUser) =>
  new Set((await extractedRows(user)).map(({ value, text }) => value ?? text));
const newTurn = (id: string, words: string) => turn(id, "s1", 1, words, `An answer to: ${words}`);

test("imported messages are not extracted again", async () => {
  const [ada, bob] = [await harness.user(), await harness.user()];
  await push(ada, "sessions", session("s1", "Where to live"));
  await push(ada, "episodes", newTurn("e1", "I live in Bern."), newTurn("e2", "Still in Bern."));
  await expect.poll(() => done(ada)).toBe(2);
  expect((await extractedRows(ada)).length).toBe(2);
  const headers = { authorization: `Bearer ${ada.token}` };
  const zip = [...new Uint8Array(await (await fetch(`${harness.url}/v1/export`, { headers })).arrayBuffer())];

  const device = await Device.of(bob, { installs: true });
  await device.installed();
  await device.page.reload(); // now the service worker serves the app
  await device.untilSyncIs("live");
  await device.setOffline(true);
  await device.call("syncNow"); // an open stream survives the emulated loss of the network
  await device.untilSyncIs("offline"); // otherwise the wait for "live" below ends too early
  await device.page.evaluate(
    (bytes) => (window as any).vademecum.importAccount(new Blob([new Uint8Array(bytes)])),
    zip,
  );
  await device.call("regenerateAnswer", "e2", "And now in Thun.");
  await device.setOffline(false);
  await device.untilSyncIs("live"); // before that, every question is answered with quotations
  const serverRows = async () =>
    (await harness.liveRows(bob, "episodes")).map(({ userMessage }) => userMessage).sort();
  await expect.poll(serverRows).toEqual(["And now in Thun.", "I live in Bern."]);
  await push(bob, "episodes", newTurn("e3", "A turn of today."));
  const finished = async () =>
    (await jobs(bob)).jobs.filter(({ state }) => state === "done").map(({ subject }) => subject);
  await expect.poll(finished).toContain("episodes/e3");
  // If e2 was answered with quotations offline, nothing was extracted from it.
  await device.call("regenerateAnswer", "e2", "And now in Thun.");
  await expect.poll(() => done(bob)).toBe(2);
  const { extraction, jobs: jobCounts } = await jobs(bob);
  expect(jobCounts.map(({ subject }) => subject).sort()).toEqual(["episodes/e2", "episodes/e3"]);
  expect(extraction.today).toBeLessThanOrEqual(3); // e2 once or twice, e3 once, e1 never
  const used = `It has used ${extraction.today} of ${DAILY} requests today.`;
  await device.navigate("/memory/background");
  await device.page.getByText(`scripted notes what is worth remembering. ${used}`).waitFor();
  // There may be duplicates if a new turn is extracted before the imported memories have arrived.
  expect(await texts(bob)).toEqual(await texts(ada));

  const more = [4, 5, 6, 7, 8, 9].map((number) => newTurn(`e${number}`, `Turn ${number}.`));
  await push(bob, "episodes", ...more);
  await device.page
    .getByText(`Today's limit of ${DAILY} requests for background tasks is reached.`)
    .waitFor();
  expect((await jobs(bob)).counts.waiting).toBe(more.length + extraction.today - DAILY);
});
