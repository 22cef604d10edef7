/** Notices: remarks of the app on an answer. A row has their codes, and the page puts them into words. */

import type { EpisodeDoc } from "../schema/rows.ts";

export type Notice = NonNullable<EpisodeDoc["notices"]>[number];

/** The codes of all notices. Those with names list documents or files. */
export const NOTICE_CODES = [
  "no_documents",
  "no_search",
  "not_found",
  "words_only",
  "files_not_read",
  "files_partly_read",
] as const;

export type NoticeCode = (typeof NOTICE_CODES)[number];

export function notice(code: NoticeCode, names?: readonly string[]): Notice {
  return names ? { code, names: [...names] } : { code };
}

/** Return the field `notices` of a turn. It is absent if there are none, because empty fields would cause conflicts. */
export function noticesField(notices: readonly Notice[]): Pick<EpisodeDoc, "notices"> {
  return notices.length > 0 ? { notices: [...notices] } : {};
}
