/** A token is revoked while its stream is open. */

import { Device, session } from "./device.ts";
import { eventually } from "./eventually.ts";
import type { User } from "./harness.ts";
import { harness, user, withUser } from "./setup.ts";

withUser();

test("a revoked device's stream ends, and its rows stay on the device", async () => {
  const { userId } = user;
  const thief: User = { userId, ...(await harness.control<{ token: string }>("token", { userId })) };
  const [own, stolen] = [
    await Device.make(harness, user, ["sessions"]),
    await Device.make(harness, thief, ["sessions"]),
  ];
  await own.insert("sessions", session("before"));
  await Promise.all([own.online(), stolen.online()]);
  await eventually("both have it", async () => (await stolen.rows("sessions")).length === 1);

  const stream = await fetch(`${harness.url}/v1/sync/sessions/1/pullStream`, {
    headers: { authorization: `Bearer ${thief.token}` },
  });
  expect(stream.status).toBe(200);
  await harness.control("revoke", { token: thief.token });
  const rest = await readToEnd(stream); // the server ends it
  await own.insert("sessions", session("after"));
  await own.settled();
  await stolen.insert("sessions", session("unsent"));
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(rest).not.toContain("after");
  expect((await stolen.rows("sessions")).map((row) => row.id).sort()).toEqual(["before", "unsent"]);
  expect((await harness.rows(user, "sessions")).map((row) => row["id"]).sort()).toEqual(["after", "before"]);
  await Promise.all([own.close(), stolen.close()]);
});

async function readToEnd(stream: Response): Promise<string> {
  let text = "";
  for await (const bytes of stream.body as unknown as AsyncIterable<Uint8Array>)
    text += new TextDecoder().decode(bytes);
  return text;
}
