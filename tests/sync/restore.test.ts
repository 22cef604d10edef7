/** A backup is restored while two devices of the app are connected. The devices upload their newer rows. */

import { Device, document, memory, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";

const NAMES = ["documents", "sessions"];
withUser(true);

const titles = async (device: Device) =>
  Object.fromEntries((await device.rows("sessions")).map((row) => [row.id, row.title]));

test("after a restore, devices upload newer rows but no erased rows", async () => {
  const [phone, laptop] = [
    await Device.make(harness, user, NAMES, true),
    await Device.make(harness, user, NAMES, true),
  ];
  const known = memory();
  await phone.insert(
    "sessions",
    session("before"),
    session("erased", { title: "secret" }),
    session("edited"),
  );
  await phone.insert("documents", document("d", user, { activeSessions: ["before"], accessCount: 1 }));
  await phone.startAppSync(known);
  await laptop.startAppSync();
  await eventually("both have it", async () => (await laptop.rows("documents")).length === 1);
  const { backup } = await harness.control<{ backup: string }>("backup");
  const old = (await known.load()).epoch;

  await eventually("they are live", async () => laptop.sync?.state$.value.kind === "live");
  await phone.insert("sessions", session("after"));
  await phone.edit("sessions", "edited", () => ({ title: "edited after" }));
  await phone.edit("documents", "d", (row) => ({
    activeSessions: [...row.activeSessions, "after"],
    accessCount: 2,
  }));
  await laptop.remove("sessions", "erased");
  await eventually(
    "both have all changes",
    async () =>
      (await titles(laptop))["edited"] === "edited after" && (await titles(phone))["erased"] === undefined,
  );

  await harness.control("restore", { backup });
  const expected = { before: "before", edited: "edited after", after: "after" };
  await eventually("the new epoch is known", async () => (await known.load()).epoch !== old);
  for (const device of [phone, laptop]) {
    await eventually(
      "all rows are restored",
      async () => JSON.stringify(sorted(await titles(device))) === JSON.stringify(sorted(expected)),
    );
  }
  await eventually("the server has them", async () => {
    const live = (await harness.rows(user, "sessions")).filter((row) => !row["_deleted"]);
    return (
      JSON.stringify(sorted(Object.fromEntries(live.map((r) => [r["id"], r["title"]])))) ===
      JSON.stringify(sorted(expected))
    );
  });
  expect(JSON.stringify(await harness.rows(user, "sessions"))).not.toContain("secret");
  const [stored] = await harness.rows(user, "documents");
  expect(stored).toMatchObject({ activeSessions: ["before", "after"], accessCount: 2 });

  // Sync continues afterwards.
  await laptop.insert("sessions", session("later"));
  await eventually("a new row arrives", async () => (await titles(phone))["later"] === "later");
  await Promise.all([phone.close(), laptop.close()]);
});

const sorted = (o: Record<string, string>) =>
  Object.fromEntries(Object.entries(o).sort(([a], [b]) => (a < b ? -1 : 1)));
