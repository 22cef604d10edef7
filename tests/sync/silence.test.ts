/** A network that takes a request and never answers it: it is asked again, and what was written goes through. */

import { Device, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { Gate } from "./gate.ts";
import { harness, user, withUser } from "./setup.ts";

const PATIENCE = { pullMs: 400, pushMs: 400, streamMs: 400 };
withUser(true);

let device: Device;
beforeEach(async () => {
  device = await Device.make(harness, user, ["sessions"], true);
});
afterEach(() => device.close());

const muted = async () => (await harness.ask<{ yes: boolean }>("muted")).yes;
const base = "/v1/sync/sessions/0";

test("a push that nobody answers is sent again", async () => {
  await device.own(undefined, { ...PATIENCE, streamMs: 5_000 });
  await harness.ask("mute", { request: `POST ${base}/push` });
  await device.insert("sessions", session("s"));
  await eventually("it is there", async () => (await harness.rows(user, "sessions")).length === 1);
  expect(await muted()).toBe(true);
});

test("a pull that nobody answers is asked again", async () => {
  const other = await Device.make(harness, user, ["sessions"], true);
  await other.insert("sessions", session("s"));
  await other.own();
  await harness.ask("mute", { request: `GET ${base}/pull?lwt=0` });
  void device.own(undefined, { ...PATIENCE, streamMs: 5_000 });
  await eventually("it is here", async () => (await device.row("sessions", "s")) !== undefined);
  expect(await muted()).toBe(true);
  await other.close();
});

test("a stream that says nothing, not even that it lives, is opened again", async () => {
  await harness.ask("mute", { request: "GET /v1/sync/stream" });
  const gate = await Gate.open(harness);
  onTestFinished(() => gate.close());
  void device.own(undefined, PATIENCE, gate.url);
  await eventually("nobody answers the first", muted);
  await eventually("it is opened again", () => gate.times("/v1/sync/stream") > 1);
});
