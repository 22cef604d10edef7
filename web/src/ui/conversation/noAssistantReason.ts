import { t } from "../../locale/t.ts";
import type { SyncKind } from "../../core/sync/syncStatus.ts";

/** Return why no assistant can be asked now, or "" if one can. `available`: whether one is set up, if that is known. */
export function noAssistantReason(available: boolean | undefined, kind?: SyncKind): string {
  if (kind === "signed-out") return t("chat.signedOut");
  if (available) return "";
  return t(available === false ? "chat.noAssistant" : "chat.assistantUnknown");
}
