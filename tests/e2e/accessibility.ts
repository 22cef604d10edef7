/** Check pages with axe-core. */

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const AXE = readFileSync("node_modules/axe-core/axe.min.js", "utf8");

/** Rules for the second theme of a page: themes differ only in colors. */
const COLOURS = { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } };

/** Return the violated rules and their first elements. `schemes`: the color schemes to check. */
export async function violations(page: Page, schemes: ("light" | "dark")[] = ["light"]): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const found: string[] = [];
  for (const [at, colorScheme] of schemes.entries()) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.waitForFunction(
      (scheme) => document.documentElement.dataset["mantineColorScheme"] === scheme,
      colorScheme,
    );
    await page.evaluate(async () => {
      const changing = document.getAnimations().filter((one) => one instanceof CSSTransition);
      await Promise.allSettled(changing.map(({ finished }) => finished)); // wait for color transitions to end
    });
    found.push(
      ...(await page.evaluate(
        async (rules) => {
          const options = { resultTypes: ["violations"], ...rules };
          const { violations } = await (window as any).axe.run(document, options);
          return violations.map(
            ({ id, nodes }: any) =>
              `${id} (${nodes.length}): ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`,
          );
        },
        at ? COLOURS : {},
      )),
    );
  }
  return found;
}

/** Expect no violations in both themes, and that the page fits the width of a phone. */
export async function expectFit(page: Page): Promise<void> {
  expect(await violations(page, ["light", "dark"])).toEqual([]);
  const before = page.viewportSize()!;
  await page.setViewportSize({ width: 360, height: 740 });
  const over = () => page.evaluate(() => document.scrollingElement!.scrollWidth - innerWidth);
  await expect.poll(over).toBeLessThanOrEqual(0);
  await page.setViewportSize(before);
}
