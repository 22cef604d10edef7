/** A browser profile of an earlier version of the app opens, shows its content and syncs. */

import { soon } from "../soon.ts";
import { Device, harness, withOwnServer } from "./app.ts";
import { drafts, lease, push } from "./accounts.ts";
import { withProject } from "./sample_memory.ts";
import { atOrigin, ORIGIN, store, unpack } from "./stored_profile.ts";

withOwnServer();

const LEASE = "lease.txt";
const FAILED = "scan.pdf";
const UTF_32 = Buffer.from("fffe00004100000042000000", "hex"); // only the server can decode it
const QUESTION = "What is the rent of the flat?";
const UNSENT_QUESTION = "How long is the notice period?";
const DRAFT = "A draft that was not sent";

/** With `MAKE_PROFILE=<archive>`, a profile of this version is stored and the stored profiles are not tested. */
const dest = process.env["MAKE_PROFILE"];

test.runIf(dest)("a profile of this version is stored", async () => {
  const user = await harness.user();
  await withProject(user);
  const failed = { status: "failed", statusDetail: "It has no text.", filename: FAILED, chunkCount: 0 };
  await push(user, "documents", { ...lease(user.userId, "d-failed"), ...failed });
  const device = await Device.of(user, atOrigin());
  await device.drop(
    LEASE,
    "The rent of the flat is 940 euros a month.\n\nNotice is given three months ahead.",
  );
  await device.drop("damaged.pdf", "%PDF-1.7 damaged");
  await device.embedded(1);
  await device.call("addFact", "home.rent", "940 euros");
  await device.page.evaluate(() => (window as any).vademecum.addFact("k".repeat(300), "rejected"));
  await soon(async () =>
    expect((await device.rows("facts")).filter((fact) => fact.syncError)).toHaveLength(1),
  );
  await device.ask(QUESTION);
  await device.until(async () => (await done(device)).includes(QUESTION));
  await soon(async () => expect(await harness.liveRows(user, "episodes")).toHaveLength(5));

  await device.setOffline(true);
  await device.call("syncNow");
  await device.untilSyncIs("offline");
  await device.drop("minutes.txt", UTF_32);
  await device.until(async () => (await device.waitingFiles()) === 1);
  await device.ask(UNSENT_QUESTION);
  await device.until(async () => (await done(device)).includes(UNSENT_QUESTION));
  await device.composer.fill(DRAFT);
  await soon(async () => expect((await drafts(device)).map(({ text }) => text)).toEqual([DRAFT]));
  const draftPath = new URL(device.page.url()).pathname;
  await device.browser.close();
  store(device.browser.profile!, dest!, { userId: user.userId, draftPath });
});

test.skipIf(dest).each(["tests/e2e/profiles/0.1.0.tar.gz"])("profile %s opens and syncs", async (archive) => {
  const { profile, about } = unpack(archive);
  const user = await harness.control<Device["user"]>("user", { tier: "JIGGA", userId: about.userId });
  const device = await Device.of(user, { ...atOrigin(), profile });
  await device.page.goto(ORIGIN + about.draftPath);
  await device.page.getByText(QUESTION).first().waitFor();
  await device.page.getByText(UNSENT_QUESTION).first().waitFor();
  expect(await device.composer.inputValue()).toBe(DRAFT);
  await device.untilSyncIs("live");

  const onServer = async (name: string, field: string) =>
    (await harness.liveRows(user, name)).map((row) => row[field] as string).sort();
  await soon(async () =>
    expect(await onServer("documents", "filename")).toEqual([LEASE, "minutes.txt", FAILED]),
  );
  await soon(async () => expect(await onServer("episodes", "userMessage")).toHaveLength(6));
  expect(await onServer("episodes", "userMessage")).toEqual(
    expect.arrayContaining([QUESTION, UNSENT_QUESTION]),
  );
  await soon(async () => expect(await onServer("facts", "key")).toEqual(["home.rent"]));
  await soon(async () => expect(await onServer("memories", "id")).toHaveLength(4));
  await soon(async () => expect(await onServer("entities", "id")).toHaveLength(6));
  await soon(async () => expect(await onServer("projects", "name")).toEqual(["Flat in Harbour Street"]));
  await device.embedded(2);
  const facts = await device.rows("facts");
  expect(facts.filter(({ syncError }) => syncError).map(({ value }) => value)).toEqual(["rejected"]);
  await device.page.getByRole("link", { name: "Documents" }).first().click();
  await device.page.getByText(LEASE).first().waitFor();
  await device.page.getByText("It has no text.").first().waitFor();
});

async function done(device: Device): Promise<string[]> {
  const turns = await device.rows("episodes");
  return turns.filter(({ status }) => status === "done").map(({ userMessage }) => userMessage);
}
