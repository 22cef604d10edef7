/** Words of this device that gave way to another device's change or delete: kept here until their owner has seen them. */

import type { RxCollection, RxConflictHandler, RxDocument } from "rxdb/plugins/core";
import type { DeviceDatabase, ConflictLoser } from "../../storage/deviceDatabase.ts";
import { editRow } from "../../storage/editRow.ts";
import { isTombstone } from "../../storage/tombstoneRows.ts";
import { reportingConflicts, type Conflict } from "./conflictHandler.ts";
import { isLocal, isReplicated } from "./pendingRows.ts";
import { CodedError } from "../../core/errors.ts";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import type { Collections } from "../../core/schema/rows.ts";
import { replacedTexts } from "../../core/schema/rowText.ts";
import { now, type AccountContext } from "../account/accountContext.ts";

type Name = keyof Collections;

/** How conflicts of a collection are resolved, and what they take away is kept. `of`: it is there once they arise. */
export function keepConflictLosers(
  device: DeviceDatabase,
  userId: string,
  name: Name,
  of: () => RxCollection<any>,
): RxConflictHandler<Row> {
  return reportingConflicts(async (conflict) => {
    // It is about what was sent. Of what was deleted here since then nothing is kept.
    if (!(await isTombstone(of(), String(conflict.ours["id"]))))
      await keepConflictLoser(device, userId, name, conflict);
  });
}

/** Keeps what a conflict took away. The same conflict, told again or by another tab, is kept once. */
export async function keepConflictLoser(
  device: DeviceDatabase,
  userId: string,
  collection: Name,
  conflict: Conflict,
): Promise<void> {
  const { ours, base, outcome } = conflict;
  if (outcome._deleted) return keepTextOfDeletedRow(device, userId, collection, conflict);
  const fields = replacedTexts(collection, ours, base, outcome);
  if (Object.keys(fields).length === 0) return;
  const rowId = String(ours["id"]);
  const id = `${userId} ${collection}/${rowId} ${String(ours["updatedAt"])}`;
  await device.lost.put({ id, userId, collection, rowId, fields, at: now() });
}

/**
 * The row died elsewhere, and stays dead; what was written here meanwhile is nowhere else. It is as old as its row, so
 * that a "forget everything" takes it along even if the delete is heard of first. One id for a row: of a question that
 * is told again once it has its answer, both are kept once.
 */
async function keepTextOfDeletedRow(
  device: DeviceDatabase,
  userId: string,
  collection: Name,
  { ours, base, outcome }: Conflict,
): Promise<void> {
  const shared = base?.["syncError"] ? undefined : base; // what was refused the server never had
  const fields = replacedTexts(collection, ours, shared, outcome);
  if (Object.keys(fields).length === 0) return;
  const at = String(ours["createdAt"]);
  const { forgottenAt = "", syncedAt = "" } = (await device.accounts.get(userId)) ?? {};
  if (at < forgottenAt) return;
  // A restored server is told of all rows as of new ones (see engines/sync): it had these before.
  const isRefused = ours["syncError"] || base?.["syncError"];
  if (!base && !isRefused && String(ours["updatedAt"]) < syncedAt) return;
  const rowId = String(ours["id"]);
  const id = `${userId} ${collection}/${rowId} gone`;
  await device.lost.put({ id, userId, collection, rowId, fields, at, gone: shared ? "changed" : "unsent" });
}

/**
 * A row that was refused has its words on this device alone. When another device's version takes its place no conflict
 * is told, because nothing waited to be sent; what the replication writes tells it. Of a row that dies here no words
 * stay; of one that dies elsewhere those which only this device had.
 */
export function watchReplacedRows(context: AccountContext): void {
  for (const [name, collection] of Object.entries(context.database.collections)) {
    collection.eventBulks$.subscribe((bulk) => {
      const { events } = bulk;
      const dead = events.filter(({ documentData }) => documentData._deleted);
      const ids = dead.map(({ documentId }) => documentId);
      if (ids.length > 0)
        void context.device.deleteConflictLosers(context.account.userId, name, ids, !isReplicated(bulk));
      if (isLocal(bulk)) return; // an edit of one's own
      for (const { previousDocumentData, documentData } of events) {
        const [ours, outcome] = [previousDocumentData as any, documentData as any];
        if (!ours?.syncError || outcome.syncError) continue;
        const conflict = { ours, base: undefined, outcome };
        void keepConflictLoser(context.device, context.account.userId, name as Name, conflict);
      }
    });
  }
}

/** Puts the words back into their row, as an edit of now. Without a row they stay here. */
export async function restoreConflictLoser(context: AccountContext, id: string): Promise<void> {
  const lost = await context.device.lost.get(id);
  if (!lost || lost.userId !== context.account.userId) return;
  const row = await context.database.collections[lost.collection as Name].findOne(lost.rowId).exec();
  if (!row) throw new CodedError("ROW_GONE");
  await editRow(row as RxDocument<any>, ({ syncError: _, ...held }) => ({
    ...held,
    ...lost.fields,
    updatedAt: now(),
  }));
  await dismissConflictLoser(context, id);
}

export async function dismissConflictLoser(context: AccountContext, id: string): Promise<void> {
  await context.device.lost.delete(id);
}

export function watchConflictLosers(
  { device, account }: AccountContext,
  listener: (lost: ConflictLoser[]) => void,
): () => void {
  return device.watchConflictLosers(account.userId, listener);
}
