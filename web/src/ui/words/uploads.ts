/** Sentences of the uploads. Short and concrete: what happened, what is safe, what to do. */

import { beginning } from "../../lib/truncate.ts";
import { isComing, type Task } from "../../core/documents/uploadTask.ts";
import { count } from "./count.ts";
import { bytes } from "./measures.ts";
import { unreadable } from "./unreadable.ts";
import { LOCALE } from "./locale.ts";

/** Characters of what another program says of a failure. */
const TOLD_MAX = 200;

const files = (n: number) => count(n, "file", "files");
const ofMany = (done: number, of: number) => `${done.toLocaleString(LOCALE)} of ${of.toLocaleString(LOCALE)}`;

export const uploads = {
  label: "Files being added",
  drop: "Drop to add",
  dropInto: "Drop to add to this conversation",
  adding: (n: number, of: number) => (of === 1 ? `Adding ${files(1)}` : `Adding file ${ofMany(n, of)}`),
  waitingForServer: (n: number) => `${files(n)} waiting for the server`,
  added: (n: number) => `${files(n)} added`,
  here: (n: number) =>
    n === 1 ? "1 file was here already" : `${n.toLocaleString(LOCALE)} files were here already`,
  failed: (n: number) => `${files(n)} could not be added`,
  unfinished: (n: number) => `${files(n)} could not be prepared wholly`,
  failedTitle: "What failed",
  cancelRest: (n: number) => `Cancel the ${n.toLocaleString(LOCALE)} that wait`,
  allAgain: "Try all again",
  over: "Nothing left to add",
  kept: "The text of a file is kept. The file itself is not.",
  cancel: (name: string) => `Cancel ${name}`,
  again: "Try again",
  againWith: (name: string) => `Try again with ${name}`,
  clear: "Clear",
  show: "Show the files",
  hide: "Hide the files",
  stage: said,
  summary,
} as const;

/** The most pressing of what is to be said. */
function summary(tasks: readonly Task[]): string {
  const those = (holds: (task: Task) => boolean) => tasks.filter(holds).length;
  const waiting = those(({ stage }) => stage === "needs-server");
  const busy = those(isComing);
  const through = those(({ stage }) => stage === "done" || stage === "failed"); // nobody waits for what was cancelled
  const failed = those(({ stage, documentId }) => stage === "failed" && documentId === null);
  const unfinished = those(({ stage, documentId }) => stage === "failed" && documentId !== null);
  const added = those(({ stage, existing }) => stage === "done" && !existing);
  const here = those(({ stage, existing }) => stage === "done" && existing);
  const went = [
    ...(failed > 0 ? [uploads.failed(failed)] : []),
    ...(unfinished > 0 ? [uploads.unfinished(unfinished)] : []),
  ];
  if (busy > 0) return [uploads.adding(through + 1, through + busy), ...went].join(", ");
  if (waiting > 0) return [uploads.waitingForServer(waiting), ...went].join(", ");
  if (added > 0) went.push(uploads.added(added));
  if (here > 0) went.push(uploads.here(here));
  return went.join(", ") || uploads.over;
}

function said(task: Task): string {
  const { stage, done, of } = task;
  switch (stage) {
    case "waiting":
      return "Waiting";
    case "sending":
      return `Sending ${bytes(done)} of ${bytes(of)}`;
    case "reading":
      return of > 0 ? `Reading page ${ofMany(done, of)}` : "Reading";
    case "embedding":
      return `Preparing search: ${ofMany(done, of)} passages`;
    case "done":
      return task.existing ? existing(task) : "Done";
    case "needs-server":
      return "Kept on this device until the server can read it";
    case "cancelled":
      return task.documentId
        ? "Stopped. It is here and is found by its words."
        : "Cancelled. Nothing of it stays.";
    case "failed":
      return problem(task);
  }
}

function existing({ sessionId }: Task): string {
  return sessionId ? "Already here: borrowed" : "Already here";
}

function problem({ name, code, message: told, of }: Task): string {
  const message = told ?? (unreadable as Record<string, string>)[code ?? ""];
  if (code === "QUOTA") {
    return `This browser has no room left for ${name}. Nothing was stored. Delete a document, or free space on this device, and try again.`;
  }
  if (code === "QUOTA_KEPT") {
    return `This browser has no room left for the text of ${name}. The file is kept on this device until there is: delete a document, or free space, and try again.`;
  }
  if (code === "EMBEDDING_FULL") {
    return "It is here and is found by its words. This browser has no room left to prepare the rest for search by meaning: free space on this device, and try again.";
  }
  if (code === "EMBEDDING") {
    return "It is here and is found by its words. The rest could not be prepared for search by meaning.";
  }
  if (code === "TOO_LARGE") {
    return (
      message || `${name} is larger than ${bytes(of)}, the most that a file may have. Nothing was stored.`
    );
  }
  if (code === "ERROR" || !message) {
    const why = beginning((message ?? code ?? "").replace(/\s+/g, " ").trim(), TOLD_MAX);
    return `${name} could not be added. Try again; if that does not help, choose the file once more. What went wrong: ${why}`;
  }
  return message;
}
