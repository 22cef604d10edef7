import { t } from "../../locale/t.ts";
import type { SyncKind } from "../../core/sync/syncStatus.ts";

/**
 * Return why no assistant can answer now, or "" if one can. `available` says whether an assistant is configured, and is
 * undefined until the server has responded.
 */
export function noAssistantReason(available: boolean | undefined, kind?: SyncKind): string {
  if (kind === "signed-out") return t("chat.signedOut");
  if (available) return "";
  return t(available === false ? "chat.noAssistant" : "chat.assistantUnknown");
}
