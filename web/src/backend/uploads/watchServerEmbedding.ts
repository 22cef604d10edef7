/** Show the progress of a document that the server embeds, until its row is no longer pending. */

import { concatMap, filter, first, map, merge, share, skipWhile, takeUntil } from "rxjs";
import { isTombstone } from "../../storage/tombstoneRows.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { isFinished } from "../../core/documents/uploadTask.ts";
import type { AccountContext } from "../account/accountContext.ts";
import type { TabCoordinator } from "../sync/tabCoordinator.ts";
import type { UploadTasks } from "./uploadTasks.ts";
import { NOT_EMBEDDED } from "../../core/documents/documentList.ts";

export function watchServerEmbedding(
  context: AccountContext,
  sync: TabCoordinator,
  tasks: UploadTasks,
  taskId: string,
  { id: documentId, chunkCount, createdAt }: DocumentDoc,
): void {
  tasks.update(taskId, { stage: "embedding", documentId, done: 0, of: chunkCount });
  const row$ = context.database.documents.findOne(documentId).$.pipe(
    skipWhile((row) => row === null), // wait until the sync delivers the row
    first((row) => row?.status !== "pending"),
  );
  // If the document is deleted before its row arrives here, there is no event for it. So check after each sync status.
  const gone$ = merge(
    context.forgotten$.pipe(filter((moment) => createdAt < moment)),
    sync.summary$.pipe(
      concatMap(() => isTombstone(context.database.documents, documentId)),
      filter(Boolean),
    ),
  ).pipe(map(() => null));
  const dropped$ = tasks.list$.pipe(filter(() => isFinished(tasks.find(taskId) ?? { stage: "cancelled" })));
  const over$ = merge(row$, gone$).pipe(first(), takeUntil(dropped$), share());
  const progress$ = sync.serverEmbedding$.pipe(takeUntil(over$));
  over$.subscribe((row) => {
    if (row?.status === "failed") {
      const isSearchable = row.statusDetail === NOT_EMBEDDED;
      const code = isSearchable ? { code: "EMBEDDING" } : { code: "FAILED", message: row.statusDetail };
      tasks.update(taskId, { stage: "failed", ...code });
    } else tasks.update(taskId, row ? { stage: "done" } : { stage: "cancelled", documentId: null });
  });
  progress$.subscribe(
    ({ [documentId]: progress }) => progress && tasks.update(taskId, { stage: "embedding", ...progress }),
  );
}
