/** Which fields of a row hold a person's words, and which of them name it in a list. */

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

/** What a list calls the row; empty for one without words. */
export function nameOf(collection: Name, row: Fields): string {
  const [field] = WORDS[collection];
  const line = String(row[field ?? ""] ?? "")
    .trim()
    .split("\n")[0]!;
  return line.length > NAME_MAX ? `${truncate(line, NAME_MAX - 1)}…` : line;
}

/**
 * The words of this device that are in `theirs` no more: both sides changed the field, and the other side's stands.
 * `base`: what both began with; without it every difference counts. Of a row that another device deleted it is what was
 * written here and never got there: the row stays deleted, its words are no longer anywhere else. Of one that was deleted
 * here nothing is kept.
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
