/** One typeface (the system's), one accent, room to read. */

import {
  createTheme,
  defaultVariantColorsResolver,
  getContrastColor,
  type VariantColorsResolver,
} from "@mantine/core";

/** Text on a filled ground fits the ground of each theme. The library looks at the light one's alone. */
const variantColorResolver: VariantColorsResolver = (input) => {
  const resolved = defaultVariantColorsResolver(input);
  if (input.variant !== "filled") return resolved;
  const on = (colorScheme: "light" | "dark") => getContrastColor({ ...input, colorScheme });
  return { ...resolved, color: `light-dark(${on("light")}, ${on("dark")})` };
};

export const theme = createTheme({
  primaryColor: "teal",
  primaryShade: 9, // the library chooses one colour of letters for both themes: white is read on this shade alone
  autoContrast: true,
  variantColorResolver,
  defaultRadius: "md",
  fontFamily: "system-ui, sans-serif",
  lineHeights: { md: "1.6" },
  respectReducedMotion: true,
  cursorType: "pointer",
});
