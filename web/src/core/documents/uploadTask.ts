/** A file on its way to be a document, as the tray shows it. */

import { storedSentences } from "../chat/storedSentences.ts";

type Stage =
  | "waiting" // for those before it
  | "sending" // done and of: bytes
  | "reading" // done and of: pages, where the kind has pages
  | "embedding" // done and of: passages
  | "done"
  | "needs-server" // only the server can read it now: it goes there when it answers
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
  /** Of a task that was cancelled: what stays. */
  documentId: string | null;
  /** It was here already and was borrowed. */
  existing: boolean;
  /** Of a task that failed: a stable code, such as QUOTA (QUOTA_KEPT: the file waits on this device) or the server's. */
  code: string | null;
  /** Of a task that failed: the sentence that came with the code, where one did. */
  message: string | null;
}

const OVER: readonly Stage[] = ["done", "failed", "cancelled"];

export function isFinished({ stage }: Pick<Task, "stage">): boolean {
  return OVER.includes(stage);
}

/**
 * As the tray lists them: what is worked on, then what waits, both in the order in which their turn comes; below them the
 * newest first. So only what becomes over changes its place: nobody loses the focus of what they are about to press.
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

/** Whoever asks about it may wait for it: nobody knows when the server answers again. */
export function isComing(task: Pick<Task, "stage">): boolean {
  return !isFinished(task) && task.stage !== "needs-server";
}

/** What an answer says of files that it waited for in vain: of some the text is there. */
export function unfinishedFilenames(tasks: readonly Task[]): string[] {
  const names = (isRead: boolean) =>
    tasks.filter(({ documentId }) => (documentId !== null) === isRead).map(({ name }) => name);
  const [unread, partly] = [names(false), names(true)];
  return [
    ...(unread.length > 0 ? [storedSentences.without(unread)] : []),
    ...(partly.length > 0 ? [storedSentences.partly(partly)] : []),
  ];
}

/** Codes of what another time may not be in the way. */
const PASSING = ["QUOTA", "QUOTA_KEPT", "ERROR"];

/** It is no whole document, and another time it may be one. */
export function mayRetry({ stage, code, documentId }: Task): boolean {
  return stage === "failed" && documentId === null && PASSING.includes(code ?? "");
}

/** Its document is here, and its search index is not whole. */
export function isUnfinished({ stage, documentId }: Pick<Task, "stage" | "documentId">): boolean {
  return (stage === "failed" || stage === "cancelled") && documentId !== null;
}

/** It failed, or a part of it, and there is something to try. */
export function canTryAgain(task: Task): boolean {
  return task.stage === "failed" && (isUnfinished(task) || mayRetry(task));
}
