/** Format the texts of the user interface. Every sentence is in `en.json`, in ICU MessageFormat. */

import { IntlMessageFormat } from "intl-messageformat";
import start from "./en.json?start";

export type TextKey = keyof typeof import("./en.json");

/**
 * The locale of dates and numbers: one of the catalog's language, never another language of the browser. A regional
 * variant that the user prefers counts, because of the order of day and month.
 */
export const LOCALE = globalThis.navigator?.languages?.find((language) => /^en\b/iu.test(language)) ?? "en";

let texts: Texts = start;
const formatters = new Map<TextKey, IntlMessageFormat>();

/** Load the texts of the parts of the page that are loaded later. */
export async function loadTexts(): Promise<void> {
  texts = { ...texts, ...(await import("./en.json?later")).default };
}

/** Return the text of a key. `values`: at least one for each argument of the message. */
export function t(key: TextKey, values?: Readonly<Record<string, string | number>>): string {
  const text = texts[key];
  if (text === undefined) throw new Error(`The text ${key} is not loaded`);
  if (typeof text === "string") return text; // a text without arguments
  const formatter = formatters.get(key) ?? new IntlMessageFormat(text, LOCALE);
  formatters.set(key, formatter);
  return formatter.format(values) as string;
}
