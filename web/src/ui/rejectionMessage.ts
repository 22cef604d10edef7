import { t } from "../locale/t.ts";
import { UNSENDABLE } from "../core/sync/unsendable.ts";

/** Return why the server rejected a row. A technical message is preceded by a sentence that says what to do. */
export function rejectionMessage({ code, message }: { code: string; message: string }): string {
  if (code === "DUPLICATE") return t("errors.duplicate");
  return code === "INVALID" && message !== UNSENDABLE ? t("errors.invalid", { message }) : message;
}
