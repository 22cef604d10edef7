/** Responses that are not from the server, and missing responses, over real HTTP. */

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { requestJson } from "../../../web/src/lib/http.ts";
import { isUnreachable } from "../../../web/src/ui/errorMessage.ts";

/** What a request throws that such a server answers. */
async function thrown(listener: RequestListener): Promise<unknown> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return requestJson({ base }, "/v1/me").catch((error: unknown) => error);
}

test("a captive portal counts as an unreachable server", async () => {
  const page = "<!doctype html><title>Welcome aboard</title>";
  expect(isUnreachable(await thrown((_, response) => response.end(page)))).toBe(true);
});

test("a lost connection counts as an unreachable server, an app error does not", async () => {
  expect(isUnreachable(await thrown((request) => request.destroy()))).toBe(true);
  const broken: RequestListener = (_, response) => {
    response.writeHead(200, { "content-length": 10 }).write("{");
    setTimeout(() => response.destroy(), 50);
  };
  expect(isUnreachable(await thrown(broken))).toBe(true);
  expect(isUnreachable(new TypeError("undefined is not a function"))).toBe(false);
});
