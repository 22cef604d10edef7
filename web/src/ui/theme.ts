import {
  createTheme,
  defaultVariantColorsResolver,
  getContrastColor,
  type VariantColorsResolver,
} from "@mantine/core";

/** Choose the text color on a filled background per color scheme. The library chooses it for the light scheme only. */
const variantColorResolver: VariantColorsResolver = (input) => {
  const resolved = defaultVariantColorsResolver(input);
  if (input.variant !== "filled") return resolved;
  const textColor = (colorScheme: "light" | "dark") => getContrastColor({ ...input, colorScheme });
  return { ...resolved, color: `light-dark(${textColor("light")}, ${textColor("dark")})` };
};

/** Props that keep a field's text out of the browser's session files, which the app cannot erase. */
const unsaved = { defaultProps: { autoComplete: "off" } };

export const theme = createTheme({
  components: { TextInput: unsaved, Textarea: unsaved },
  primaryColor: "teal",
  // One shade for both schemes: the library's default text color is white in both, and readable only on this shade.
  primaryShade: 9,
  autoContrast: true,
  variantColorResolver,
  defaultRadius: "md",
  fontFamily: "system-ui, sans-serif",
  lineHeights: { md: "1.6" },
  respectReducedMotion: true,
  cursorType: "pointer",
});
