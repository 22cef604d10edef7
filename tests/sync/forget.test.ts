/** "Forget everything" while a device is away: it cannot bring anything back, and loses nothing that is new. */

import { Device, document, now, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

test("forget everything while a device holds old, refused and new rows", async () => {
  const phone = await Device.make(harness, user, ["documents", "sessions"]);
  await phone.insert(
    "sessions",
    session("old"),
    session("old-edited"),
    session("taken", { externalId: "x" }),
  );
  await phone.insert("documents", document("old", user));
  await phone.online();
  await phone.insert("sessions", session("refused", { externalId: "x" }));
  await eventually(
    "it is refused",
    async () => (await phone.row("sessions", "refused")).syncError?.code === "DUPLICATE",
  );
  await phone.offline();
  await phone.edit("sessions", "old-edited", () => ({ title: "secret edit" }));
  await phone.insert("sessions", session("unsent", { title: "secret unsent" })); // made before, never sent

  const receipt = await harness.call<{ leftovers: number }>(user, "/v1/forget", {
    method: "POST",
    body: JSON.stringify({ confirm: "forget everything" }),
  });
  expect(receipt).toMatchObject({ leftovers: 0, rows: 4 });
  await new Promise((resolve) => setTimeout(resolve, 5));
  await phone.insert("sessions", session("new", { createdAt: now(), updatedAt: now() }));

  await phone.online();
  await eventually("the new one is up", async () =>
    (await harness.rows(user, "sessions")).some((row) => row["id"] === "new" && !row["_deleted"]),
  );
  await eventually("the old ones go", async () => (await phone.row("sessions", "old-edited")) === undefined);
  await phone.settled();
  // What was stored is gone from the device; what never was stays there, marked, in its owner's hands.
  const here = Object.fromEntries((await phone.rows("sessions")).map((row) => [row.id, row.syncError?.code]));
  expect(here).toEqual({ refused: "DUPLICATE", unsent: "FORGOTTEN", new: undefined });
  expect(await phone.rows("documents")).toEqual([]);
  const rows = JSON.stringify(await harness.rows(user, "sessions"));
  expect(rows).not.toContain("secret");

  // A retry of the refused one is told why it does not go up any more.
  await phone.edit("sessions", "refused", () => ({ externalId: "free", syncError: undefined }));
  await eventually(
    "it says so",
    async () => (await phone.row("sessions", "refused")).syncError?.code === "FORGOTTEN",
  );
  await phone.close();
});
