/** For a whole run: start one server for each distinct settings, when the first test file requests it. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Harness, type Settings } from "./sync/harness.ts";

export default async function setup(): Promise<() => Promise<void>> {
  const servers = new Map<string, Promise<Harness>>();
  const shared = (settings: string) => {
    const server = servers.get(settings) ?? Harness.start(JSON.parse(settings) as Settings);
    servers.set(settings, server);
    return server;
  };
  const registry = createServer((request, response) => {
    text(request)
      .then(shared)
      .then(
        ({ address }) => response.end(JSON.stringify(address)),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
  });
  await new Promise<void>((resolve) => registry.listen(0, "127.0.0.1", resolve));
  process.env["VADEMECUM_SHARED"] = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`;
  return async () => {
    registry.close();
    registry.closeAllConnections();
    const started = await Promise.allSettled(servers.values());
    await Promise.all(started.map((start) => start.status === "fulfilled" && start.value.stop()));
  };
}
