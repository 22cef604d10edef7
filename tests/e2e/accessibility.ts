/** What axe-core finds wrong with a page as it is now. */

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const AXE = readFileSync("node_modules/axe-core/axe.min.js", "utf8");

/** Two themes of one page differ in nothing else. */
const COLOURS = { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } };

/** Rules that are broken and where; none on a page that all can use. In the theme the page has, or in both. */
export async function violations(page: Page, schemes: ("light" | "dark")[] = ["light"]): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const found: string[] = [];
  for (const [at, colorScheme] of schemes.entries()) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.waitForFunction(
      (wanted) => document.documentElement.dataset["mantineColorScheme"] === wanted,
      colorScheme,
    );
    await page.evaluate(async () => {
      const changing = document.getAnimations().filter((one) => one instanceof CSSTransition);
      await Promise.allSettled(changing.map(({ finished }) => finished)); // colours in between are nobody's choice
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

/** Nothing is wrong with the page, in both themes, and on a phone it is not wider than that. */
export async function expectFit(page: Page): Promise<void> {
  expect(await violations(page, ["light", "dark"])).toEqual([]);
  const before = page.viewportSize()!;
  await page.setViewportSize({ width: 360, height: 740 });
  const over = () => page.evaluate(() => document.scrollingElement!.scrollWidth - innerWidth);
  await expect.poll(over).toBeLessThanOrEqual(0);
  await page.setViewportSize(before);
}
