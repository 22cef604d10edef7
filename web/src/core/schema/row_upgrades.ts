/**
 * Upgrade rows of schema version 0 to version 1. Mirrors server/vademecum/model/schema/row_upgrades.py; shared cases:
 * tests/conformance/row_upgrades.json.
 *
 * An upgrade keeps the id, the times and the content of a row, so that a device and the server, which upgrade their
 * rows independently, get equal rows.
 */

import type { Collections, EpisodeDoc } from "./rows.ts";

type Row = Record<string, any>;
type Notice = NonNullable<EpisodeDoc["notices"]>[number];

const NAME_MAX = 255;
const NOTICES_MAX = 20;
const UNTITLED = "New conversation";
const NOT_EMBEDDED =
  "A part of this document could not be embedded, so search finds that part only by its words. Add the document " +
  "again to retry.";

/** Sentences of the app in answers of version 0, each a paragraph, and the codes of their notices in version 1. */
const SENTENCES: Record<string, string> = {
  "This conversation has no documents yet. Add one, and ask again.": "no_documents",
  "No assistant can be reached, and a FREE account's questions do not look into documents.": "no_search",
  "Searched by words alone: the model that understands meaning is not ready on this device.": "words_only",
};
/** Sentences with names of files: what precedes and follows the names, and the code. */
const FOUND_NOTHING = [
  "I could not find information about that in your documents. Searched: ",
  ".",
  "not_found",
] as const;
const UNFINISHED = [
  ["This answer is without ", ": not read when it was given.", "files_not_read"],
  [
    "Not wholly ready when this answer was given, so something in it may have been missed: ",
    ".",
    "files_partly_read",
  ],
] as const;

const UPGRADES: { [Name in keyof Collections]?: (row: Row) => Row } = {
  documents: (row) => ({
    ...row,
    ...(row["statusDetail"] === NOT_EMBEDDED ? { statusDetail: "not_embedded" } : {}),
    ...{ textHash: "", original: "none", fileRevision: 1 },
  }),
  vectorEmbeddings: (row) => ({ ...row, textHash: "" }),
  projects: (row) => ({ ...row, documentIds: [] }),
  sessions: (row) => ({
    ...row,
    title: row["title"] === UNTITLED ? "" : row["title"],
    ...{ documentScope: "chosen", memory: "on" },
  }),
  episodes: upgradeEpisode,
};
/** The blank values of the fields that version 1 requires in addition. */
const TOMBSTONE_FIELDS: { [Name in keyof Collections]?: Row } = {
  documents: { textHash: "", original: "none", fileRevision: 0 },
  vectorEmbeddings: { textHash: "" },
  projects: { documentIds: [] },
  sessions: { documentScope: "chosen", memory: "on" },
};

/** Return the row or tombstone of version 0 as version 1. Collections without a version 1 are returned unchanged. */
export function upgradeRow(collection: keyof Collections, row: Row): Row {
  const upgrade = UPGRADES[collection];
  if (!upgrade) return row;
  return row["_deleted"] ? { ...row, ...TOMBSTONE_FIELDS[collection] } : upgrade(row);
}

/** Number the citations by their position, and replace sentences of the app by notices. */
function upgradeEpisode(row: Row): Row {
  // Imported rows can be invalid. They are rejected after the upgrade.
  if (typeof row["aiResponse"] !== "string" || !Array.isArray(row["citations"])) return row;
  const isQuotation = row["model"] === "quotes";
  const paragraphs: string[] = [];
  const notices: Notice[] = [];
  for (const paragraph of row["aiResponse"].split("\n\n")) {
    const notice = noticeOf(paragraph, isQuotation);
    if (notice) notices.push(notice);
    else paragraphs.push(paragraph);
  }
  const citations = (row["citations"] as Row[]).map((citation, at) => ({ n: at + 1, ...citation }));
  const isReplaced = notices.length > 0 && notices.length <= NOTICES_MAX;
  return { ...row, citations, ...(isReplaced ? { aiResponse: paragraphs.join("\n\n"), notices } : {}) };
}

/** Return the notice that replaces a paragraph, or null for other text. */
function noticeOf(paragraph: string, isQuotation: boolean): Notice | null {
  if (isQuotation && Object.hasOwn(SENTENCES, paragraph)) return { code: SENTENCES[paragraph]! };
  for (const [before, after, code] of isQuotation ? [FOUND_NOTHING, ...UNFINISHED] : UNFINISHED) {
    const isMatch = paragraph.startsWith(before) && paragraph.endsWith(after);
    const found = isMatch ? paragraph.slice(before.length, -after.length) : "";
    const names = found.split(", ");
    if (found && !found.includes("\n") && names.every((name) => [...name].length <= NAME_MAX))
      return { code, names };
  }
  return null;
}
