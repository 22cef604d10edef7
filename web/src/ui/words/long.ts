/** Sentences of a text that is shown shortened. */

import { LOCALE } from "./locale.ts";

export const long = {
  all: (n: number) => `Show all ${n.toLocaleString(LOCALE)} characters`,
  less: "Show less",
} as const;
