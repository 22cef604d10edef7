import { t } from "../locale/t.ts";
import { storedSentences } from "../core/chat/storedSentences.ts";

/** Return why the server rejected a row. A technical message is preceded by a sentence that says what to do. */
export function rejectionMessage({ code, message }: { code: string; message: string }): string {
  if (code === "DUPLICATE") return t("errors.duplicate");
  return code === "INVALID" && message !== storedSentences.refused
    ? t("errors.invalid", { message })
    : message;
}
