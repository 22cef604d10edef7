/** Foreign and missing responses. Uses real HTTP. */

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { requestJson } from "../../../web/src/lib/http.ts";
import { isUnreachable } from "../../../web/src/ui/errorMessage.ts";

/** Return the error that a request to a server with this listener throws. */
async function errorFrom(listener: RequestListener): Promise<unknown> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return requestJson({ base }, "/v1/me").catch((error: unknown) => error);
}

test("a captive portal counts as an unreachable server", async () => {
  const page = "<!doctype html><title>Welcome aboard</title>";
  expect(isUnreachable(await errorFrom((_, response) => response.end(page)))).toBe(true);
});

test("a lost connection counts as an unreachable server, an app error does not", async () => {
  expect(isUnreachable(await errorFrom((request) => request.destroy()))).toBe(true);
  const broken: RequestListener = (_, response) => {
    response.writeHead(200, { "content-length": 10 }).write("{");
    setTimeout(() => response.destroy(), 50);
  };
  expect(isUnreachable(await errorFrom(broken))).toBe(true);
  expect(isUnreachable(new TypeError("undefined is not a function"))).toBe(false);
});
