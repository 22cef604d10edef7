/** Upload tasks: files that become documents, as the upload tray shows them. */

import { storedSentences } from "../chat/storedSentences.ts";

type Stage =
  | "waiting" // queued behind earlier files
  | "sending" // `done` and `of` count bytes
  | "reading" // `done` and `of` count pages, for formats with pages
  | "embedding" // `done` and `of` count chunks
  | "done"
  | "needs-server" // only the server can parse the file; it is sent when the server is reachable
  | "failed"
  | "cancelled";

export interface Task {
  id: string;
  name: string;
  size: number;
  sessionId: string | null;
  stage: Stage;
  done: number;
  of: number;
  /** Id of the task's document, if one exists. For a cancelled task, the id of the document that stays. */
  documentId: string | null;
  /** Whether the document existed already and was borrowed. */
  existing: boolean;
  /**
   * Stable error code of a failed task, from this app or the server. QUOTA_KEPT: the file waits on this
   * device.
   */
  code: string | null;
  /** Error message of a failed task, if the error has one besides its code. */
  message: string | null;
}

const FINISHED_STAGES: readonly Stage[] = ["done", "failed", "cancelled"];

export function isFinished({ stage }: Pick<Task, "stage">): boolean {
  return FINISHED_STAGES.includes(stage);
}

/**
 * Sort tasks for the tray: running tasks, then waiting tasks, both in queue order, then the other tasks,
 * newest first. Only tasks that finish move, so that users do not lose the focus of a button.
 */
export function inOrder(tasks: readonly Task[]): Task[] {
  const isWaiting = ({ stage }: Task) => stage === "waiting";
  const coming = tasks.filter(isComing);
  return [
    ...coming.filter((task) => !isWaiting(task)),
    ...coming.filter(isWaiting),
    ...tasks.filter((task) => !isComing(task)).reverse(),
  ];
}

/**
 * Return whether an answer waits for a task. It does not wait for a task that needs an unreachable server, because the
 * server may stay unreachable for any time.
 */
export function isComing(task: Pick<Task, "stage">): boolean {
  return !isFinished(task) && task.stage !== "needs-server";
}

/**
 * Return the sentences that an answer adds about unfinished files: one for files without text, and one for files that
 * are only partly ready.
 */
export function unfinishedFilenames(tasks: readonly Task[]): string[] {
  const names = (isRead: boolean) =>
    tasks.filter(({ documentId }) => (documentId !== null) === isRead).map(({ name }) => name);
  const [unread, partly] = [names(false), names(true)];
  return [
    ...(unread.length > 0 ? [storedSentences.without(unread)] : []),
    ...(partly.length > 0 ? [storedSentences.partly(partly)] : []),
  ];
}

/** Error codes of temporary failures, which a retry can fix. */
const TEMPORARY_ERRORS = ["QUOTA", "QUOTA_KEPT", "ERROR"];

/** Return whether a failed task that has no document can be retried. */
export function mayRetry({ stage, code, documentId }: Task): boolean {
  return stage === "failed" && documentId === null && TEMPORARY_ERRORS.includes(code ?? "");
}

/** Return whether a task ended with a document that is only partly embedded. */
export function isUnfinished({ stage, documentId }: Pick<Task, "stage" | "documentId">): boolean {
  return (stage === "failed" || stage === "cancelled") && documentId !== null;
}

/** Return whether a retry can finish a failed task or the embedding of its document. */
export function canTryAgain(task: Task): boolean {
  return task.stage === "failed" && (isUnfinished(task) || mayRetry(task));
}
