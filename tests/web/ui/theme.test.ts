/** Text on filled buttons has enough contrast in the light and the dark theme. */

import { DEFAULT_THEME, defaultVariantColorsResolver, luminance, mergeMantineTheme } from "@mantine/core";
import { theme } from "../../../web/src/ui/theme.ts";

const AA = 4.5;
const FILLED = ["teal", "red"];
const whole = mergeMantineTheme(DEFAULT_THEME, theme);

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light! + 0.05) / (dark! + 0.05);
}

function shade(scheme: "light" | "dark"): number {
  const { primaryShade } = whole;
  return typeof primaryShade === "number" ? primaryShade : primaryShade[scheme];
}

test.each(FILLED.flatMap((color) => [[color, "light"] as const, [color, "dark"] as const]))(
  "a filled %s button is readable in the %s theme",
  (color, scheme) => {
    const letters = defaultVariantColorsResolver({ color, theme: whole, variant: "filled" }).color;
    const ink = letters.includes("black") ? whole.black : whole.white;
    expect(contrast(whole.colors[color]![shade(scheme)]!, ink)).toBeGreaterThanOrEqual(AA);
  },
);
