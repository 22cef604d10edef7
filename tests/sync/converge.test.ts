/** Two devices of one person come to hold the same, live and after days without a network. Unmodified clients. */

import { block, document, session, type Device } from "./device.ts";
import { eventually } from "./eventually.ts";
import { laptop, phone, user, withTwoDevices } from "./setup.ts";

const NAMES = ["documents", "vectorEmbeddings", "sessions"];
withTwoDevices(NAMES);

const holdings = async (device: Device) =>
  Object.fromEntries(
    await Promise.all(
      NAMES.map(async (n) => [n, (await device.rows(n)).sort((a, b) => (a.id < b.id ? -1 : 1))]),
    ),
  );
const same = async () => JSON.stringify(await holdings(phone)) === JSON.stringify(await holdings(laptop));

test("what one device writes the other has, live", async () => {
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
  await eventually("the blocks go with it", async () => (await phone.rows("vectorEmbeddings")).length === 0);
  expect(await same()).toBe(true);
});

test("what both did without a network is united when they are back", async () => {
  await phone.insert("sessions", session("common"), session("doomed"));
  await phone.insert("documents", document("old", user));
  await Promise.all([phone.online(), laptop.online()]);
  await eventually("both hold the start", same);
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
  await eventually("both hold the same", same);
  const held = await holdings(phone);
  expect(held["sessions"].map((row: any) => row.id)).toEqual(["common", "l1", "l2", "l3", "p1", "p2", "p3"]);
  expect(held["documents"].map((row: any) => row.id)).toEqual(["ld", "pd"]);
  expect(held["vectorEmbeddings"].map((row: any) => row.id)).toEqual(["ld.0", "ld.1", "pd.0", "pd.1"]);
  expect(await phone.row("sessions", "common")).toMatchObject({ title: "renamed", mode: "authoritative" });
});

test("a document of 2,000 chunks goes through with RxDB's default batches", async () => {
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
  expect(await same()).toBe(true);
  const pushed = phone.pushes.flatMap((push) => push.rows).length;
  expect(pushed).toBe(126); // each row went up once
});
