import { NOT_EMBEDDED } from "../../core/documents/documentList.ts";
import { t } from "../../locale/t.ts";

/** Return why a document failed. `detail`: its `statusDetail`, which is a code or a text of an older version. */
export function failureText(detail: string): string {
  return detail === NOT_EMBEDDED ? t("documents.notEmbedded") : detail || t("documents.prepareFailed");
}
