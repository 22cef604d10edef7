/** A backup is restored under an unmodified client. It waits and loses nothing, or starts again as docs/wire.md says. */

import { session, type Device } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, laptop, phone, user, withTwoDevices } from "./setup.ts";

withTwoDevices(["sessions"], true);

async function epochThere(): Promise<string> {
  const page = await harness.call<{ checkpoint: { id: string } }>(
    user,
    "/v1/sync/sessions/0/pull?lwt=0&limit=1",
  );
  return page.checkpoint.id.split(".")[0]!;
}

const titlesOf = (rows: { [field: string]: any }[]) =>
  Object.fromEntries(rows.map(({ id, title }) => [id, title]).sort());

const titles = async (device: Device) => titlesOf(await device.rows("sessions"));

/** Waits until the client has tried again in vain. */
async function refused(what: string): Promise<void> {
  const count = () => phone.failures.filter((failure) => failure === what).length;
  const before = count();
  await eventually(what, () => count() > before + 2);
}

async function backUp(): Promise<string> {
  return (await harness.ask<{ backup: string }>("backup")).backup;
}

test("a client waits after a restore and keeps its rows", async () => {
  await phone.insert("sessions", session("before"));
  await phone.online();
  const backup = await backUp();
  await phone.insert("sessions", session("after"));
  await eventually("it is up", async () => (await harness.rows(user, "sessions")).length === 2);
  await harness.ask("restore", { backup });
  await phone.edit("sessions", "after", () => ({ title: "edited" }));
  await refused("RC_PULL 409 EPOCH");
  expect(await titles(phone)).toEqual({ after: "edited", before: "before" });
});

test("a client that starts again from zero brings back what came after the backup", async () => {
  await phone.insert("sessions", session("before"), session("edited"), session("erased"));
  const old = await epochThere();
  phone.connect(old);
  await eventually("they are up", async () => (await harness.rows(user, "sessions")).length === 3);
  const backup = await backUp();
  await phone.insert("sessions", session("after"));
  await phone.edit("sessions", "edited", () => ({ title: "edited after" }));
  await phone.remove("sessions", "erased");
  await eventually("it is deleted there", async () => (await harness.live(user, "sessions")).length === 3);
  await eventually("all is up", async () => {
    const there = titlesOf(await harness.live(user, "sessions"));
    return there["after"] !== undefined && there["edited"] === "edited after";
  });
  await harness.ask("restore", { backup });
  expect(await epochThere()).not.toBe(old);

  await phone.insert("sessions", session("unsent"));
  await refused("RC_PUSH 409 EPOCH");
  expect(titlesOf(await harness.live(user, "sessions"))).toEqual({ before: "before", edited: "edited" });

  await phone.offline();
  phone.connect(await epochThere());
  const all = { after: "after", before: "before", edited: "edited after", unsent: "unsent" };
  await eventually("the server has it all", async () => {
    const there = titlesOf(await harness.live(user, "sessions"));
    return JSON.stringify(there) === JSON.stringify(all);
  });
  await phone.settled();
  await laptop.online();
  expect(await titles(phone)).toEqual(all);
  expect(await titles(laptop)).toEqual(all);
});
