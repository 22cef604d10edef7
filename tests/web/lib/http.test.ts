/** What answers in the server's place, over real HTTP, and what does not answer. */

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

test("a page that wants a sign-in to the network is no answer of the server", async () => {
  const page = "<!doctype html><title>Welcome aboard</title>";
  expect(isUnreachable(await thrown((_, response) => response.end(page)))).toBe(true);
});

test("a server that goes away before or in its answer is not reached; a mistake of the app is not called that", async () => {
  expect(isUnreachable(await thrown((request) => request.destroy()))).toBe(true);
  const broken: RequestListener = (_, response) => {
    response.writeHead(200, { "content-length": 10 }).write("{");
    setTimeout(() => response.destroy(), 50);
  };
  expect(isUnreachable(await thrown(broken))).toBe(true);
  expect(isUnreachable(new TypeError("undefined is not a function"))).toBe(false);
});
