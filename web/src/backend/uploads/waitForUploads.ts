/** Before a question in a chat is answered, wait for the files that are being added to the chat. */

import {
  concatMap,
  EMPTY,
  lastValueFrom,
  map,
  merge,
  startWith,
  takeUntil,
  takeWhile,
  tap,
  timeout,
  timer,
  type BehaviorSubject,
} from "rxjs";
import { isComing, type Task } from "../../core/documents/uploadTask.ts";
import { isWhole } from "../library/documents.ts";
import type { AccountDatabase } from "../../storage/accountDatabase.ts";
import type { AccountContext } from "../account/accountContext.ts";

export interface IncomingFiles {
  tasks$: BehaviorSubject<Task[]>;
  /** Return a promise that resolves when each file that was added so far has a task. */
  filesAdded(): Promise<unknown>;
}

/**
 * Time without progress after which the wait for uploads ends. It is long, because the server reports no progress while
 * it parses a file.
 */
const UPLOAD_TIMEOUT_MS = 300_000;
/** Time limit for the sync to deliver text that the server has parsed. */
const SYNC_TIMEOUT_MS = 10_000;

/**
 * Wait until no file of the session is being processed, until the files make no progress for `timeoutMs`, or until
 * `skip` aborts. Return the tasks whose text is not complete on this device. `onPending` gets the names of the
 * unfinished files.
 */
export async function waitForUploads(
  context: AccountContext,
  { tasks$, filesAdded }: IncomingFiles,
  sessionId: string,
  onPending: (names: string[]) => void,
  skip: AbortSignal,
  timeoutMs = UPLOAD_TIMEOUT_MS,
): Promise<Task[]> {
  await filesAdded();
  const isPending = (task: Task) => task.sessionId === sessionId && isComing(task);
  const ours = new Map(tasks$.value.filter(isPending).map((task) => [task.id, task]));
  if (ours.size === 0 || skip.aborted) return [];
  const pending$ = tasks$.pipe(
    timeout({ each: timeoutMs, with: () => EMPTY }),
    map((tasks) => {
      for (const task of tasks) if (ours.has(task.id)) ours.set(task.id, task);
      return [...ours.values()].filter(isComing);
    }),
    takeWhile((pending) => pending.length > 0),
    tap((pending) => onPending(pending.map(({ name }) => name))),
    takeUntil(whenAborted(skip)),
  );
  await lastValueFrom(pending$, { defaultValue: [] });
  const [done, failed] = [true, false].map((isDone) =>
    [...ours.values()].filter(({ stage }) => (stage === "done") === isDone),
  ) as [Task[], Task[]];
  return [...failed, ...(await waitForText(context, done, sessionId, skip))];
}

/**
 * Wait until the session has borrowed the tasks' documents and their text is complete on this device, but at most
 * `SYNC_TIMEOUT_MS` or until `skip` is aborted. Return the tasks that are not ready by then.
 */
function waitForText({ database }: AccountContext, tasks: Task[], sessionId: string, skip: AbortSignal) {
  const unsynced$ = merge(database.documents.eventBulks$, database.vectorEmbeddings.eventBulks$).pipe(
    takeUntil(timer(SYNC_TIMEOUT_MS)),
    takeUntil(whenAborted(skip)),
    startWith(null), // check at least once, even without an event
    concatMap(() => notSynced(database, tasks, sessionId)),
    takeWhile((unsynced) => unsynced.length > 0, true),
  );
  return lastValueFrom(unsynced$);
}

/** Return the tasks whose document the session has not borrowed or whose text is not complete on this device. */
async function notSynced(
  database: AccountDatabase,
  tasks: readonly Task[],
  sessionId: string,
): Promise<Task[]> {
  const isSynced = await Promise.all(
    tasks.map(async ({ documentId }) => {
      const found = await database.documents.findOne(documentId!).exec();
      return found !== null && found.activeSessions.includes(sessionId) && isWhole({ database }, found);
    }),
  );
  return tasks.filter((_, at) => !isSynced[at]);
}

export function whenAborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener("abort", resolve, { once: true });
  });
}
