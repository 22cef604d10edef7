import { bytes } from "../../locale/format.ts";
import { t, type TextKey } from "../../locale/t.ts";
import { truncate } from "../../lib/truncate.ts";
import { isComing, type Task } from "../../core/documents/uploadTask.ts";
import type { UnreadableCode } from "../../backend/api.ts";

/** Length in characters to which a technical error message is truncated. */
const DETAILS_MAX = 200;

/** Map the codes of unreadable files to texts that say why the file cannot be read. */
export const UNREADABLE: Record<Exclude<UnreadableCode, "NEEDS_SERVER">, TextKey> = {
  UNSUPPORTED_TYPE: "uploads.error.unsupportedType",
  NO_TEXT: "uploads.error.noText",
  GARBLED: "uploads.error.garbled",
  ENCRYPTED: "uploads.error.encrypted",
  DAMAGED: "uploads.error.damaged",
  TOO_EXPANSIVE: "uploads.error.tooExpansive",
  PARSE_TIMEOUT: "uploads.error.parseTimeout",
  PARSE_MEMORY: "uploads.error.parseMemory",
  EMPTY: "uploads.error.empty",
};

/** Return a line about all uploads: the progress, then failures, then completed uploads once none is in progress. */
export function uploadSummary(tasks: readonly Task[]): string {
  const count = (condition: (task: Task) => boolean) => tasks.filter(condition).length;
  const waiting = count(({ stage }) => stage === "needs-server");
  const active = count(isComing);
  const ended = count(({ stage }) => stage === "done" || stage === "failed"); // canceled files do not count
  const failed = count(({ stage, documentId }) => stage === "failed" && documentId === null);
  const unfinished = count(({ stage, documentId }) => stage === "failed" && documentId !== null);
  const existing = count((task) => task.stage === "done" && task.existing === true);
  const added = count(({ stage }) => stage === "done") - existing;
  const parts: string[] = [];
  if (active > 0) parts.push(t("uploads.adding", { n: ended + 1, total: ended + active }));
  else if (waiting > 0) parts.push(t("uploads.waitingForServer", { n: waiting }));
  if (failed > 0) parts.push(t("uploads.failed", { n: failed }));
  if (unfinished > 0) parts.push(t("uploads.unfinished", { n: unfinished }));
  if (active + waiting > 0) return parts.join(" · ");
  if (added > 0) parts.push(t("uploads.added", { n: added }));
  if (existing > 0) parts.push(t("uploads.existing", { n: existing }));
  return parts.join(" · ") || t("uploads.none");
}

/** Return a text for the stage of an upload. For a failed upload, the text says why it failed. */
export function stageLabel(task: Task): string {
  switch (task.stage) {
    case "waiting":
      return t("uploads.stage.waiting");
    case "sending":
      return t("uploads.stage.sending", { done: bytes(task.done), total: bytes(task.of) });
    case "reading":
      if (task.of === 0) return t("uploads.stage.reading");
      return t("uploads.stage.page", { done: task.done, total: task.of });
    case "embedding":
      return t("uploads.stage.embedding", { done: task.done, total: task.of });
    case "done":
      if (!task.existing) return t("uploads.stage.added");
      return t(task.sessionId ? "uploads.stage.existingInChat" : "uploads.stage.existing");
    case "needs-server":
      return t("uploads.stage.needsServer");
    case "cancelled":
      return t(task.documentId ? "uploads.stage.stopped" : "uploads.stage.canceled");
    case "failed":
      return failure(task);
  }
}

function failure({ name, code, message, limit }: Extract<Task, { stage: "failed" }>): string {
  if (code === "QUOTA") return t("uploads.error.quota", { name });
  if (code === "QUOTA_KEPT") return t("uploads.error.quotaKept", { name });
  if (code === "EMBEDDING_FULL") return t("uploads.error.embeddingFull");
  if (code === "EMBEDDING") return t("uploads.error.embedding");
  if (code === "TOO_LARGE") return message || t("uploads.error.tooLarge", { name, limit: bytes(limit ?? 0) });
  const key = (UNREADABLE as Partial<Record<string, TextKey>>)[code];
  const text = message ?? (key ? t(key) : "");
  if (text && code !== "ERROR") return text;
  const reason = truncate((message ?? code).replace(/\s+/g, " ").trim(), DETAILS_MAX);
  return t("uploads.error.other", { name, reason });
}
