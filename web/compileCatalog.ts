/**
 * Compile the catalog of texts while the app is built. Messages are parsed here, so that the page needs no parser. The
 * texts for parts of the page that are loaded later are put in a separate file.
 */

import { readFileSync } from "node:fs";
import { isLiteralElement, parse, type MessageFormatElement } from "@formatjs/icu-messageformat-parser";
import type { Plugin } from "vite";

/** Pattern of the keys whose texts are part of the initial load. */
export const START =
  /^(?:(?:app|chat|common|errors|sidebar|sync\.detail|sync\.line)\.|model\.(?:offered|download|notNow)$)/u;

/** Return the plugin that compiles the catalog. If `isSplit` is false, as in tests, the initial load has all texts. */
export function compileCatalog({ isSplit = true } = {}): Plugin {
  return {
    name: "compile-catalog",
    load(id) {
      const [path = "", part] = id.split("?");
      if (!path.endsWith("/locale/en.json") || !part) return undefined;
      const catalog = JSON.parse(readFileSync(path, "utf8")) as Record<string, string>;
      const wanted = Object.entries(catalog).filter(
        ([key]) => !isSplit || START.test(key) === (part === "start"),
      );
      const texts = Object.fromEntries(wanted.map(([key, text]) => [key, compile(text)]));
      return { code: `export default ${JSON.stringify(texts)}`, moduleType: "js" };
    },
  };
}

/** Return the parsed message, or the text itself if it has no arguments. */
function compile(text: string): string | MessageFormatElement[] {
  const message = parse(text);
  const [first] = message;
  return message.length === 1 && first && isLiteralElement(first) ? first.value : message;
}
