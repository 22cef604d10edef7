import {
  createTheme,
  defaultVariantColorsResolver,
  getContrastColor,
  type VariantColorsResolver,
} from "@mantine/core";

/** Choose the text color on a filled background for each color scheme. The library considers only the light one. */
const variantColorResolver: VariantColorsResolver = (input) => {
  const resolved = defaultVariantColorsResolver(input);
  if (input.variant !== "filled") return resolved;
  const textColor = (colorScheme: "light" | "dark") => getContrastColor({ ...input, colorScheme });
  return { ...resolved, color: `light-dark(${textColor("light")}, ${textColor("dark")})` };
};

/** Props that keep a field's text out of the browser's session files, which an erasure does not reach. */
const unsaved = { defaultProps: { autoComplete: "off" } };

export const theme = createTheme({
  components: { TextInput: unsaved, Textarea: unsaved },
  primaryColor: "teal",
  primaryShade: 9, // the library uses one text color for both schemes, and white is readable only on this shade
  autoContrast: true,
  variantColorResolver,
  defaultRadius: "md",
  fontFamily: "system-ui, sans-serif",
  lineHeights: { md: "1.6" },
  respectReducedMotion: true,
  cursorType: "pointer",
});
