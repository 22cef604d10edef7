/** A very long answer is rendered without freezing the page. */

import { withServer } from "./app.ts";
import { person, push, syncedDevice, withRows } from "./accounts.ts";
import { turn } from "./sample_memory.ts";

withServer();

const PARAGRAPH =
  "Some **bold** text with `code` and [a link](https://example.org) that goes on for a while, as answers do.\n\n";
const SECTION = `# Rents\n\n${PARAGRAPH.repeat(6)}- one\n- two\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n`;
const LONG = `${SECTION.repeat(200_000 / SECTION.length)}The *last* words.`;

test("a long answer does not freeze the page", { timeout: 120_000 }, async () => {
  const ada = await person();
  await withRows(ada);
  await push(ada, "episodes", turn("e1", "s-lease", 1, "What is the rent?", LONG));
  const device = await syncedDevice(ada);
  await device.page.evaluate(() => {
    const state = { beats: 0, longest: 0, isDrawn: false };
    let before = performance.now();
    const beat = () => {
      const now = performance.now();
      const answer = document.querySelector("article h1");
      const end = [...document.querySelectorAll("article em")].some((one) => one.textContent === "last");
      if (answer && !end) state.beats += 1;
      if (!state.isDrawn) state.longest = Math.max(state.longest, now - before);
      state.isDrawn ||= end;
      before = now;
      setTimeout(beat);
    };
    beat();
    (window as any).drawn = state;
  });
  await device.page.getByRole("link", { name: "Lease of the flat" }).first().click();
  await device.page.locator("em", { hasText: "last" }).waitFor();
  const drawn = await device.page.evaluate(() => (window as any).drawn);
  if (process.env["SOAK"]) console.log(LONG.length, drawn);
  expect(drawn.beats).toBeGreaterThan(5);
});
