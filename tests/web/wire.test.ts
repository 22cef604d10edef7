/** What answers in the server's place, over real HTTP. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { request } from "../../web/src/engines/sync/wire.ts";
import { isUnreachable } from "../../web/src/ui/said.ts";

test("a page that wants a sign-in to the network is no answer of the server", async () => {
  const portal = createServer((_, response) => response.end("<!doctype html><title>Welcome aboard</title>"));
  await new Promise<void>((resolve) => portal.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void portal.close());
  const base = `http://127.0.0.1:${(portal.address() as AddressInfo).port}`;
  const error = await request({ base }, "/v1/me").catch((thrown: unknown) => thrown);
  expect(isUnreachable(error)).toBe(true);
});
