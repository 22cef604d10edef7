/** What cannot be drawn takes nothing else with it. */

import { withServer } from "./app.ts";
import { person, push, Visit, withRows } from "./accounts.ts";
import { turn } from "./sample_memory.ts";

withServer();

const WRITTEN = "The rent is **940 euros**, which breaks whoever draws it.";
let visit: Visit;

/** From now on what draws a text that breaks it fails, and so does, while `broken`, whatever counts things. */
beforeAll(async () => {
  const ada = await person();
  await withRows(ada);
  await push(ada, "episodes", turn("e1", "s-lease", 1, "What is the rent?", WRITTEN));
  await push(ada, "episodes", turn("e2", "s-lease", 2, "And the deposit?", "It is **three rents**."));
  visit = await Visit.of(ada);
  await visit.page.evaluate(() => {
    const { test } = RegExp.prototype;
    RegExp.prototype.test = function (text) {
      if (String(text).includes("breaks whoever draws it")) throw new Error("It cannot be drawn.");
      return test.call(this, text);
    };
    const { select } = Intl.PluralRules.prototype;
    Intl.PluralRules.prototype.select = function (n: number) {
      if ((window as any).broken) throw new Error("It cannot be counted.");
      return select.call(this, n);
    };
  });
});

const alert = () => visit.page.getByRole("alert").filter({ hasText: "This page cannot be displayed" });
const go = (name: string) => visit.page.getByRole("link", { name }).first().click();
const breaks = (broken: boolean) => visit.page.evaluate((on) => void ((window as any).broken = on), broken);

test("an answer that cannot render is plain text", async () => {
  await go("Lease of the flat");
  await visit.page.locator("strong", { hasText: "three rents" }).waitFor();
  await visit.page.getByText(WRITTEN).waitFor();
  await visit.page.getByText("What is the rent?").waitFor();
  await visit.page.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
  expect(await alert().count()).toBe(0);
});

test("a page that fails to render shows an error", async () => {
  await breaks(true);
  await go("Documents");
  await alert().waitFor();
  await visit.accessible();
  await breaks(false);
  await go("Settings");
  await visit.page.getByRole("heading", { name: "Settings" }).first().waitFor();
  expect(await alert().count()).toBe(0);
  await go("Documents");
  await visit.page.getByText("lease.txt").first().waitFor();
});
