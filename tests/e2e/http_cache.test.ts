/** The HTTP cache, which the app cannot clear, contains no personal data. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Device, harness, withServer } from "./app.ts";

withServer();

const CANARY = "xylophonic";

/** Return all files in a folder, recursively. */
const files = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile());

test("the HTTP cache contains no personal data", async () => {
  const user = await harness.user();
  const form = new FormData();
  form.append("file", new Blob([`The ${CANARY} is a word of this document alone.`]), `${CANARY}.txt`);
  const headers = { authorization: `Bearer ${user.token}` };
  expect((await fetch(`${harness.url}/v1/documents`, { method: "POST", headers, body: form })).status).toBe(
    201,
  );
  const device = await Device.of(user, { processArguments: [] });
  await device.embedded(1);
  await device.page.evaluate(async () => {
    for (const path of ["/v1/documents", "/v1/export", "/v1/me"]) await (await fetch(path)).arrayBuffer();
  });
  const cache = join(device.browser.profile!, "Default", "Cache");
  await device.browser.close();
  const contents = files(cache).map((path) => readFileSync(path, "latin1"));
  expect(contents.some((text) => text.includes("/assets/"))).toBe(true);
  const privateText = new RegExp(`/v1/[a-zA-Z/]+|${CANARY}`, "g");
  expect(contents.flatMap((text) => text.match(privateText) ?? [])).toEqual([]);
  await device.stop();
});
