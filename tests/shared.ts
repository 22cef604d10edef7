/** Share servers between test files: one per settings, started when the first file requests it. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Harness, type Settings } from "./sync/harness.ts";

export default async function setup(): Promise<() => Promise<void>> {
  const servers = new Map<string, Promise<Harness>>();
  const shared = (wanted: string) => {
    const server = servers.get(wanted) ?? Harness.start(JSON.parse(wanted) as Settings);
    servers.set(wanted, server);
    return server;
  };
  const door = createServer((request, answer) => {
    text(request)
      .then(shared)
      .then(
        ({ place }) => answer.end(JSON.stringify(place)),
        (error: unknown) => answer.writeHead(500).end(String(error)),
      );
  });
  await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve));
  process.env["VADEMECUM_SHARED"] = `http://127.0.0.1:${(door.address() as AddressInfo).port}`;
  return async () => {
    door.close();
    door.closeAllConnections();
    const started = await Promise.allSettled(servers.values());
    await Promise.all(started.map((one) => one.status === "fulfilled" && one.value.stop()));
  };
}
