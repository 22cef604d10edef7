/** Conflict losers: text of this device that lost to another device's edit or delete, kept until the user has seen it. */

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

/** Return a conflict handler that keeps the losers. `of` returns the collection, which exists by the first conflict. */
export function keepConflictLosers(
  device: DeviceDatabase,
  userId: string,
  name: Name,
  of: () => RxCollection<any>,
): RxConflictHandler<Row> {
  return reportingConflicts(async (conflict) => {
    // Keep nothing of a row that this device deleted after sending it.
    if (!(await isTombstone(of(), String(conflict.ours["id"]))))
      await keepConflictLoser(device, userId, name, conflict);
  });
}

/** Keep the losing text of a conflict. Repeated reports, also by other tabs, are stored once. */
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
 * Keep the text of a row that was deleted elsewhere while it was edited here. It gets the age of its row, so that a "forget
 * everything" deletes it even if the tombstone arrives first. Each row has one id, so that later reports replace earlier
 * ones.
 */
async function keepTextOfDeletedRow(
  device: DeviceDatabase,
  userId: string,
  collection: Name,
  { ours, base, outcome }: Conflict,
): Promise<void> {
  const shared = base?.["syncError"] ? undefined : base; // the server never had a rejected state
  const fields = replacedTexts(collection, ours, shared, outcome);
  if (Object.keys(fields).length === 0) return;
  const at = String(ours["createdAt"]);
  const { forgottenAt = "", syncedAt = "" } = (await device.accounts.get(userId)) ?? {};
  if (at < forgottenAt) return;
  // After a restore all rows are sent as new (see replication.ts). The server had these before.
  const isRefused = ours["syncError"] || base?.["syncError"];
  if (!base && !isRefused && String(ours["updatedAt"]) < syncedAt) return;
  const rowId = String(ours["id"]);
  const id = `${userId} ${collection}/${rowId} gone`;
  await device.lost.put({ id, userId, collection, rowId, fields, at, gone: shared ? "changed" : "unsent" });
}

/**
 * Keep the text of rejected rows that the sync replaces. RxDB reports no conflict for them, because nothing was pending. Also
 * delete the losers of deleted rows, except text that only this device had of rows deleted elsewhere.
 */
export function watchReplacedRows(context: AccountContext): void {
  for (const [name, collection] of Object.entries(context.database.collections)) {
    collection.eventBulks$.subscribe((bulk) => {
      const { events } = bulk;
      const dead = events.filter(({ documentData }) => documentData._deleted);
      const ids = dead.map(({ documentId }) => documentId);
      if (ids.length > 0)
        void context.device.deleteConflictLosers(context.account.userId, name, ids, !isReplicated(bulk));
      if (isLocal(bulk)) return; // a local edit
      for (const { previousDocumentData, documentData } of events) {
        const [ours, outcome] = [previousDocumentData as any, documentData as any];
        if (!ours?.syncError || outcome.syncError) continue;
        const conflict = { ours, base: undefined, outcome };
        void keepConflictLoser(context.device, context.account.userId, name as Name, conflict);
      }
    });
  }
}

/** Write the text back into its row as a new edit. Throw `ROW_GONE` if the row does not exist. */
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
