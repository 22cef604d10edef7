/** Sentences of the timeline: what was said, when, and where. */

import { count } from "./count.ts";

export const timeline = {
  title: "Timeline",
  hint: "What was asked and answered, in all conversations, newest first.",
  search: "Search what was said",
  where: "Where",
  found: (n: number) => count(n, "message", "messages"),
  byServer: "Found by words and by meaning, the best first.",
  byDevice: "Found on this device, by words alone.",
  nothing: "Nothing that was said has these words.",
  none: "Nothing was said yet. Your conversations will be listed here, by day.",
  more: "Show more",
  untitled: "A conversation",
} as const;
