/** The files that a conversation takes in while something is asked there: the answer waits until it can look into them. */

import { EMPTY, lastValueFrom, map, takeUntil, takeWhile, tap, timeout, type BehaviorSubject } from "rxjs";
import { sleep } from "../../lib/sleep.ts";
import { isComing, type Task } from "../../core/documents/uploadTask.ts";
import { isWhole } from "../library/documents.ts";
import type { AccountContext } from "../account/accountContext.ts";

export interface IncomingFiles {
  tasks$: BehaviorSubject<Task[]>;
  /** Resolves when each file that was chosen so far is a task. */
  filesAdded(): Promise<unknown>;
}

/** After so long without a word of any file nobody knows whether one still comes. The server reads in silence. */
const UPLOAD_TIMEOUT_MS = 300_000;
/** What the server has read comes by the sync, collection by collection. */
const SYNC_TIMEOUT_MS = 10_000;
const LOOK_MS = 50;

/**
 * Resolves when none of them is on its way any more, or when `enough` says that nobody waits for the rest: with those
 * that are not wholly here. `tell` is told the names of those that are waited for.
 */
export async function waitForUploads(
  context: AccountContext,
  { tasks$, filesAdded: chosen }: IncomingFiles,
  sessionId: string,
  tell: (names: string[]) => void,
  enough: AbortSignal,
  silentMs = UPLOAD_TIMEOUT_MS,
): Promise<Task[]> {
  await chosen();
  const isOurs = (task: Task) => task.sessionId === sessionId && isComing(task);
  const ours = new Map(tasks$.value.filter(isOurs).map((task) => [task.id, task]));
  if (ours.size === 0 || enough.aborted) return [];
  const coming$ = tasks$.pipe(
    timeout({ each: silentMs, with: () => EMPTY }),
    map((tasks) => {
      for (const task of tasks) if (ours.has(task.id)) ours.set(task.id, task);
      return [...ours.values()].filter(isComing);
    }),
    takeWhile((coming) => coming.length > 0),
    tap((coming) => tell(coming.map(({ name }) => name))),
    takeUntil(whenAborted(enough)),
  );
  await lastValueFrom(coming$, { defaultValue: [] });
  const isDone = ({ stage }: Task) => stage === "done";
  const missing = [...ours.values()].filter((task) => !isDone(task));
  const until = performance.now() + SYNC_TIMEOUT_MS; // by a clock that nobody sets
  let done = [...ours.values()].filter(isDone);
  while (
    (done = await notSynced(context, done, sessionId)).length > 0 &&
    performance.now() < until &&
    !enough.aborted
  )
    await sleep(LOOK_MS, enough);
  return [...missing, ...done];
}

/** Those whose text is not in the conversation yet. */
async function notSynced(
  context: AccountContext,
  tasks: readonly Task[],
  sessionId: string,
): Promise<Task[]> {
  const here = await Promise.all(
    tasks.map(async ({ documentId }) => {
      const found = await context.database.documents.findOne(documentId!).exec();
      return found !== null && found.activeSessions.includes(sessionId) && isWhole(context, found);
    }),
  );
  return tasks.filter((_, at) => !here[at]);
}

export function whenAborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener("abort", resolve, { once: true });
  });
}
