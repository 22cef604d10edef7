/** Format the texts of the user interface. All of its sentences are in `en.json`, in ICU MessageFormat. */

import { IntlMessageFormat } from "intl-messageformat";
import start from "./en.json?start";

export type TextKey = keyof typeof import("./en.json");

/**
 * The locale for dates and numbers. Its language is the catalog's language, even if the user prefers another one. Its
 * region is the user's, because the order of day and month depends on it.
 */
export const LOCALE = globalThis.navigator?.languages?.find((language) => /^en\b/iu.test(language)) ?? "en";

let texts: Texts = start;
const formatters = new Map<TextKey, IntlMessageFormat>();

/** Load the texts of those parts of the page that are not part of the initial load. */
export async function loadTexts(): Promise<void> {
  texts = { ...texts, ...(await import("./en.json?later")).default };
}

/** Return the text of a key. `values` must contain a value for each argument of the message. */
export function t(key: TextKey, values?: Readonly<Record<string, string | number>>): string {
  const text = texts[key];
  if (text === undefined) throw new Error(`The text ${key} is not loaded`);
  if (typeof text === "string") return text; // the build leaves texts without arguments unparsed
  const formatter = formatters.get(key) ?? new IntlMessageFormat(text, LOCALE);
  formatters.set(key, formatter);
  return formatter.format(values) as string;
}
