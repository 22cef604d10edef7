/** Dates and numbers are in English, the language of the app, in browsers of any language. */

import { readdirSync, readFileSync } from "node:fs";
import { Device, harness, withServer } from "./app.ts";

withServer();

test("a German browser shows English dates and numbers", async () => {
  const device = await Device.of(await harness.user(), { locale: "de-DE" });
  await device.drop("lease.txt", "The rent is 940 euros a month.");
  await device.embedded(1);
  await device.page.getByText("Synced just now").first().waitFor();
  await device.page.goto(`${harness.url}/settings`);
  await device.page
    .getByText(/30 bytes of 5\d\d MB|of \d,\d{3} MB|0 kB of|of \d+ [MG]B/u)
    .first()
    .waitFor();
  expect(await device.page.locator("body").innerText()).not.toMatch(/\bvor \d|jetzt|Byte\b/u);
});

test("no source file formats values in the browser's language", () => {
  const files = readdirSync("web/src", { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.tsx?$/u.test(name),
  );
  const local = /toLocale(Date|Time)?String\((undefined|\))|Intl\.(?!Collator)\w+\((undefined|\))/u;
  expect(files.filter((name) => local.test(readFileSync(`web/src/${name}`, "utf8")))).toEqual([]);
});
