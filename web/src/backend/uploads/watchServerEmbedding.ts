/** A document that the server embeds: how far it is, until its row says that it is over. */

import { concatMap, filter, first, map, merge, share, skipWhile, takeUntil } from "rxjs";
import { isBuried } from "../../storage/tombstoneRows.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { isOver } from "../../core/documents/uploadTask.ts";
import type { House } from "../account/accountContext.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";
import type { Tasks } from "./uploadTasks.ts";

export function followServer(
  house: House,
  syncing: SyncCoordinator,
  tasks: Tasks,
  taskId: string,
  { id: documentId, chunkCount, createdAt }: DocumentDoc,
): void {
  tasks.tell(taskId, { stage: "embedding", documentId, done: 0, of: chunkCount });
  const row$ = house.records.documents.findOne(documentId).$.pipe(
    skipWhile((row) => row === null), // it comes by the sync
    first((row) => row?.status !== "pending"),
  );
  // Deleted before its row came: no row and no event of one tells. Each news of the sync is a time to look.
  const gone$ = merge(
    house.forgotten$.pipe(filter((moment) => createdAt < moment)),
    syncing.summary$.pipe(
      concatMap(() => isBuried(house.records.documents, documentId)),
      filter(Boolean),
    ),
  ).pipe(map(() => null));
  const dropped$ = tasks.list$.pipe(filter(() => isOver(tasks.of(taskId) ?? { stage: "cancelled" })));
  const over$ = merge(row$, gone$).pipe(first(), takeUntil(dropped$), share());
  const progress$ = syncing.embedding$.pipe(takeUntil(over$));
  over$.subscribe((row) => {
    if (row?.status === "failed") {
      tasks.tell(taskId, { stage: "failed", code: "FAILED", message: row.statusDetail ?? null });
    } else tasks.tell(taskId, row ? { stage: "done" } : { stage: "cancelled", documentId: null });
  });
  progress$.subscribe(({ [documentId]: progress }) => progress && tasks.tell(taskId, progress));
}
