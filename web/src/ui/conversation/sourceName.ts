import type { Citation } from "../../core/chat/citation.ts";
import { t } from "../../locale/t.ts";

/** Return the name of a source: its filename and, if the citation has one, its page number. */
export function sourceName({ filename, page }: Pick<Citation, "filename" | "page">): string {
  return page === undefined ? filename : t("chat.sourcePage", { name: filename, page });
}
