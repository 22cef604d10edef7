/** The fields of each collection that contain text of the user. The first of them names a row in lists. */

import { truncate } from "../../lib/truncate.ts";
import type { Collections } from "./rows.ts";

type Name = keyof Collections;
type Fields = Readonly<Record<string, unknown>>;

const WORDS: Record<Name, readonly string[]> = {
  documents: ["filename"],
  vectorEmbeddings: [],
  projects: ["name", "description"],
  sessions: ["title"],
  episodes: ["userMessage", "aiResponse"],
  facts: ["key", "value"],
  memories: ["text"],
  entities: ["name", "notes"],
  relationships: ["label"],
  summaries: ["content"],
};
const NAME_MAX = 80;

/** Return the name of a row in a list, or an empty string for a row without text. */
export function nameOf(collection: Name, row: Fields): string {
  const [field] = WORDS[collection];
  const line = String(row[field ?? ""] ?? "")
    .trim()
    .split("\n")[0]!;
  return line.length > NAME_MAX ? `${truncate(line, NAME_MAX - 1)}…` : line;
}

/**
 * Map field names to the texts of this device's row that `theirs` replaced: this device changed the field, and `theirs`
 * does not contain the text. `base` is the last common state; without it, every text counts as changed. If another
 * device deleted the row, the result contains the text that was written here and not synced, because no other copy
 * exists. If this device deleted the row, the result is empty.
 */
export function replacedTexts(
  collection: Name,
  ours: Fields,
  base: Fields | undefined,
  theirs: Fields,
): Record<string, string> {
  if (ours["_deleted"]) return {};
  const lost: Record<string, string> = {};
  for (const field of WORDS[collection]) {
    const [mine, yours] = [ours[field], theirs[field]];
    if (typeof mine !== "string" || !mine.trim() || mine === base?.[field]) continue;
    if (!String(yours ?? "").includes(mine)) lost[field] = mine;
  }
  return lost;
}
