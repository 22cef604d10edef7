/** A map from keys to texts. The build parses the texts that have arguments (see web/compileCatalog.ts). */
type Texts = Record<string, string | import("@formatjs/icu-messageformat-parser").MessageFormatElement[]>;

declare module "*.json?start" {
  const texts: Texts;
  export default texts;
}

declare module "*.json?later" {
  const texts: Texts;
  export default texts;
}
