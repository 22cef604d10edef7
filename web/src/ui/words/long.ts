/** Sentences of a text that is shown shortened. */

export const long = {
  all: (n: number) => `Show all ${n.toLocaleString()} characters`,
  less: "Show less",
} as const;
