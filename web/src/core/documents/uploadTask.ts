/**
 * Upload tasks: files that become documents, as the upload tray shows them. A task is in one state, and only
 * `transition` changes it:
 *
 *   waiting ──▶ sending ──▶ reading ──▶ embedding ──▶ done
 *      │           │          ▲   │
 *      ├───────────┴──────────┘   └──▶ needs-server
 *      │   the server cannot take
 *      │   the file: parse it here
 *      └──▶ done, embedding: the document exists
 *
 * Each state before `done` except `needs-server` can change to `failed`; each can change to `cancelled`, and so can
 * `failed`. A task waits behind earlier files. In `needs-server`, only the server can parse the file. When the server is
 * reachable, a new task for this file replaces the task, as a retry of a failed task does.
 */

import { notice, type Notice } from "../chat/notices.ts";
import type { Progress } from "./documentList.ts";

export type UploadState =
  | { stage: "waiting" | "needs-server" | "cancelled" }
  | ({ stage: "sending" } & Progress) // counts bytes
  | ({ stage: "reading" } & Progress) // counts pages, for formats with pages
  | ({ stage: "embedding" } & Progress) // counts chunks
  | { stage: "done"; existing?: boolean } // `existing`: the document existed already and was borrowed
  /** `code` is a stable error code of this app or the server. QUOTA_KEPT: the file waits on this device. */
  | { stage: "failed"; code: string; message?: string | undefined; limit?: number };

export type Task = UploadState & {
  id: string;
  name: string;
  size: number;
  sessionId: string | null;
  /**
   * Id of the task's document, if one exists. If cancelling deletes the task's own document, null; an existing document
   * with the same content stays.
   */
  documentId: string | null;
};

type Stage = UploadState["stage"];
/** A state, with the task's document if it changes. */
export type Change = UploadState & { documentId?: string | null };

const RUNNING: readonly Stage[] = ["reading", "embedding", "done", "failed", "cancelled"];
const NEXT: Record<Stage, readonly Stage[]> = {
  waiting: ["sending", ...RUNNING],
  sending: ["sending", ...RUNNING],
  reading: ["needs-server", ...RUNNING],
  embedding: ["embedding", "done", "failed", "cancelled"],
  "needs-server": ["cancelled"],
  failed: ["cancelled"],
  done: [],
  cancelled: [],
};

/** Return the task in another state. Return the task unchanged if the change is too late, as after a cancellation. */
export function transition(task: Task, change: Change): Task {
  if (!NEXT[task.stage].includes(change.stage)) return task;
  const { id, name, size, sessionId, documentId } = task;
  return { id, name, size, sessionId, documentId, ...change };
}

export function isFinished({ stage }: Pick<Task, "stage">): boolean {
  return ["done", "failed", "cancelled"].includes(stage);
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

/** Return the notices about unfinished files: one for files without text, and one for files that are partly ready. */
export function unfinishedNotices(tasks: readonly Task[]): Notice[] {
  const names = (isRead: boolean) =>
    tasks.filter(({ documentId }) => (documentId !== null) === isRead).map(({ name }) => name);
  const [unread, partly] = [names(false), names(true)];
  return [
    ...(unread.length > 0 ? [notice("files_not_read", unread)] : []),
    ...(partly.length > 0 ? [notice("files_partly_read", partly)] : []),
  ];
}

/** Error codes of temporary failures, which a retry can fix. */
const TEMPORARY_ERRORS = ["QUOTA", "QUOTA_KEPT", "ERROR"];

/** Return whether a failed task that has no document can be retried. */
export function mayRetry(task: Task): boolean {
  return task.stage === "failed" && task.documentId === null && TEMPORARY_ERRORS.includes(task.code);
}

/** Return whether a task ended with a document that is only partly embedded. */
export function isUnfinished({ stage, documentId }: Pick<Task, "stage" | "documentId">): boolean {
  return (stage === "failed" || stage === "cancelled") && documentId !== null;
}

/** Return whether a retry can finish a failed task or the embedding of its document. */
export function canTryAgain(task: Task): boolean {
  return task.stage === "failed" && (isUnfinished(task) || mayRetry(task));
}
