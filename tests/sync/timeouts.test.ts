/** The network accepts a request but never responds. The app repeats the request. */

import { Device, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import { FaultProxy } from "./faultProxy.ts";
import { harness, user, withUser } from "./setup.ts";

const TIMEOUTS = { pullMs: 400, pushMs: 400, streamMs: 400 };
withUser(true);

let device: Device;
beforeEach(async () => {
  device = await Device.make(harness, user, ["sessions"], true);
});
afterEach(() => device.close());

const isIgnored = async () => (await harness.control<{ yes: boolean }>("isRequestIgnored")).yes;
const base = "/v1/sync/sessions/1";

test("a push without a response is repeated", async () => {
  await device.startAppSync(undefined, { ...TIMEOUTS, streamMs: 5_000 });
  await harness.control("ignoreRequest", { request: `POST ${base}/push` });
  await device.insert("sessions", session("s"));
  await eventually("the row is stored", async () => (await harness.rows(user, "sessions")).length === 1);
  expect(await isIgnored()).toBe(true);
});

test("a pull without a response is repeated", async () => {
  const other = await Device.make(harness, user, ["sessions"], true);
  await other.insert("sessions", session("s"));
  await other.startAppSync();
  await harness.control("ignoreRequest", { request: `GET ${base}/pull?lwt=0` });
  void device.startAppSync(undefined, { ...TIMEOUTS, streamMs: 5_000 });
  await eventually("the row arrives", async () => (await device.row("sessions", "s")) !== undefined);
  expect(await isIgnored()).toBe(true);
  await other.close();
});

test("a stream without heartbeats is opened again", async () => {
  await harness.control("ignoreRequest", { request: "GET /v1/sync/stream" });
  const proxy = await FaultProxy.open(harness);
  onTestFinished(() => proxy.close());
  void device.startAppSync(undefined, TIMEOUTS, proxy.url);
  await eventually("the first stream gets no response", isIgnored);
  await eventually("it is opened again", () => proxy.count("/v1/sync/stream") > 1);
});
