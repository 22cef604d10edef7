/** Two devices of an account converge, live and after days offline. Plain clients. */

import { block, document, session, type Device } from "./device.ts";
import { eventually } from "./eventually.ts";
import { laptop, phone, user, withTwoDevices } from "./setup.ts";

const NAMES = ["documents", "vectorEmbeddings", "sessions"];
withTwoDevices(NAMES);

const allRows = async (device: Device) =>
  Object.fromEntries(
    await Promise.all(
      NAMES.map(async (n) => [n, (await device.rows(n)).sort((a, b) => (a.id < b.id ? -1 : 1))]),
    ),
  );
const areEqual = async () => JSON.stringify(await allRows(phone)) === JSON.stringify(await allRows(laptop));

test("changes of one device arrive live on the other device", async () => {
  await Promise.all([phone.online(), laptop.online()]);
  await phone.insert("sessions", session("s"));
  await phone.insert("documents", document("d", user, { activeSessions: ["s"] }));
  await phone.insert("vectorEmbeddings", block("d", 0, ["The landlord pays."]));
  await eventually(
    "the block arrives",
    async () => (await laptop.row("vectorEmbeddings", "d.0")) !== undefined,
  );
  await laptop.edit("sessions", "s", () => ({ title: "Lease" }));
  await eventually("the edit comes back", async () => (await phone.row("sessions", "s")).title === "Lease");
  await laptop.remove("documents", "d");
  await eventually("the delete comes back", async () => (await phone.row("documents", "d")) === undefined);
  await eventually(
    "its blocks are deleted too",
    async () => (await phone.rows("vectorEmbeddings")).length === 0,
  );
  expect(await areEqual()).toBe(true);
});

test("offline changes of two devices merge once both are online", async () => {
  await phone.insert("sessions", session("common"), session("doomed"));
  await phone.insert("documents", document("old", user));
  await Promise.all([phone.online(), laptop.online()]);
  await eventually("both have the first rows", areEqual);
  await Promise.all([phone.offline(), laptop.offline()]);
  for (const [device, own] of [
    [phone, "p"],
    [laptop, "l"],
  ] as const) {
    await device.insert("sessions", ...[1, 2, 3].map((i) => session(`${own}${i}`)));
    await device.insert("documents", document(`${own}d`, user));
    await device.insert("vectorEmbeddings", block(`${own}d`, 0, [own]), block(`${own}d`, 1, [own]));
  }
  await phone.edit("sessions", "common", () => ({ title: "renamed" }));
  await laptop.edit("sessions", "common", () => ({ mode: "authoritative" }));
  await phone.remove("sessions", "doomed");
  await laptop.remove("documents", "old");
  await Promise.all([phone.online(), laptop.online()]);
  await eventually("both have the same rows", areEqual);
  const rows = await allRows(phone);
  expect(rows["sessions"].map((row: any) => row.id)).toEqual(["common", "l1", "l2", "l3", "p1", "p2", "p3"]);
  expect(rows["documents"].map((row: any) => row.id)).toEqual(["ld", "pd"]);
  expect(rows["vectorEmbeddings"].map((row: any) => row.id)).toEqual(["ld.0", "ld.1", "pd.0", "pd.1"]);
  expect(await phone.row("sessions", "common")).toMatchObject({ title: "renamed", mode: "authoritative" });
});

test("2,000 chunks sync in RxDB's default batches", async () => {
  const words = (n: number) => Array.from({ length: 180 }, (_, i) => `word${n}x${i}`).join(" ");
  const blocks = Array.from({ length: 125 }, (_, number) =>
    block(
      "big",
      number,
      Array.from({ length: 16 }, (_, i) => words(number * 16 + i)),
      {
        dims: 384,
        embedding: Buffer.from(new Float32Array(16 * 384).map(Math.random).buffer).toString("base64"),
      },
    ),
  );
  await phone.insert("vectorEmbeddings", ...blocks);
  await phone.insert("documents", document("big", user, { chunkCount: 2000, status: "ready" }));
  await phone.online();
  await laptop.online();
  await eventually("all blocks arrive", async () => (await laptop.rows("vectorEmbeddings")).length === 125);
  expect(await areEqual()).toBe(true);
  const pushed = phone.pushes.flatMap((push) => push.rows).length;
  expect(pushed).toBe(126); // each row was pushed once
});
