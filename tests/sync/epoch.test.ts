/**
 * A backup is restored while a plain client is connected. The client waits without losing rows, or restarts from zero
 * as docs/wire.md describes.
 */

import { session, type Device } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, laptop, phone, user, withTwoDevices } from "./setup.ts";

withTwoDevices(["sessions"], true);

async function serverEpoch(): Promise<string> {
  const page = await harness.request<{ checkpoint: { id: string } }>(
    user,
    "/v1/sync/sessions/1/pull?lwt=0&limit=1",
  );
  return page.checkpoint.id.split(".")[0]!;
}

const titlesOf = (rows: { [field: string]: any }[]) =>
  Object.fromEntries(rows.map(({ id, title }) => [id, title]).sort());

const titles = async (device: Device) => titlesOf(await device.rows("sessions"));

/** Wait until the phone has reported this failure three more times. */
async function waitForFailures(failure: string): Promise<void> {
  const count = () => phone.failures.filter((each) => each === failure).length;
  const before = count();
  await eventually(failure, () => count() > before + 2);
}

async function createBackup(): Promise<string> {
  return (await harness.control<{ backup: string }>("backup")).backup;
}

test("a client waits after a restore and keeps its rows", async () => {
  await phone.insert("sessions", session("before"));
  await phone.online();
  const backup = await createBackup();
  await phone.insert("sessions", session("after"));
  await eventually("it is stored", async () => (await harness.rows(user, "sessions")).length === 2);
  await harness.control("restore", { backup });
  await phone.edit("sessions", "after", () => ({ title: "edited" }));
  await waitForFailures("RC_PULL 409 EPOCH");
  expect(await titles(phone)).toEqual({ after: "edited", before: "before" });
});

test("a client that restarts from zero after a restore uploads newer rows", async () => {
  await phone.insert("sessions", session("before"), session("edited"), session("erased"));
  const old = await serverEpoch();
  phone.connect(old);
  await eventually("they are stored", async () => (await harness.rows(user, "sessions")).length === 3);
  const backup = await createBackup();
  await phone.insert("sessions", session("after"));
  await phone.edit("sessions", "edited", () => ({ title: "edited after" }));
  await phone.remove("sessions", "erased");
  await eventually(
    "the delete is stored",
    async () => (await harness.liveRows(user, "sessions")).length === 3,
  );
  await eventually("all changes are stored", async () => {
    const stored = titlesOf(await harness.liveRows(user, "sessions"));
    return stored["after"] !== undefined && stored["edited"] === "edited after";
  });
  await harness.control("restore", { backup });
  expect(await serverEpoch()).not.toBe(old);

  await phone.insert("sessions", session("unsent"));
  await waitForFailures("RC_PUSH 409 EPOCH");
  expect(titlesOf(await harness.liveRows(user, "sessions"))).toEqual({ before: "before", edited: "edited" });

  await phone.offline();
  phone.connect(await serverEpoch());
  const all = { after: "after", before: "before", edited: "edited after", unsent: "unsent" };
  await eventually("the server has all rows", async () => {
    const stored = titlesOf(await harness.liveRows(user, "sessions"));
    return JSON.stringify(stored) === JSON.stringify(all);
  });
  await phone.settled();
  await laptop.online();
  expect(await titles(phone)).toEqual(all);
  expect(await titles(laptop)).toEqual(all);
});
