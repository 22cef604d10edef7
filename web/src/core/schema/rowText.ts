/** The fields of each collection that contain text of the user, and the field that names a row in a list. */

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
 * Return the texts of this device's row that `theirs` has replaced, by field: both sides changed the field,
 * and theirs won. `base` is the last common state; without it every difference counts. If another device
 * deleted the row, return the text that was written here and not synced, because no other copy exists. If
 * this device deleted the row, return nothing.
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
