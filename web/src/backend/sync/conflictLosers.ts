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

/**
 * Return a conflict handler that stores conflict losers. `of` returns the collection, which exists when the first
 * conflict occurs.
 */
export function keepConflictLosers(
  device: DeviceDatabase,
  userId: string,
  name: Name,
  of: () => RxCollection<any>,
): RxConflictHandler<Row> {
  return reportingConflicts(async (conflict) => {
    // Store no conflict loser if this device deleted the row after sending it.
    if (!(await isTombstone(of(), String(conflict.ours["id"]))))
      await keepConflictLoser(device, userId, name, conflict);
  });
}

/** Store the text that lost a conflict. Repeated reports of a conflict, also by other tabs, store the text once. */
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
 * Store the text of a row that was edited here and deleted elsewhere. The text gets the creation time of the row, so
 * that a "forget everything" deletes the text even if the tombstone arrives first. The id depends only on the row, so
 * that a later report replaces an earlier one.
 */
async function keepTextOfDeletedRow(
  device: DeviceDatabase,
  userId: string,
  collection: Name,
  { ours, base, outcome }: Conflict,
): Promise<void> {
  const shared = base?.["syncError"] ? undefined : base; // the server never stored a rejected state
  const fields = replacedTexts(collection, ours, shared, outcome);
  if (Object.keys(fields).length === 0) return;
  const at = String(ours["createdAt"]);
  const { forgottenAt = "", syncedAt = "" } = (await device.accounts.get(userId)) ?? {};
  if (at < forgottenAt) return;
  // After a restore all rows are sent without a base (see replication.ts). A row that has not changed since the last sync
  // was on the server already, so it has no edit that could be lost.
  const isRefused = ours["syncError"] || base?.["syncError"];
  if (!base && !isRefused && String(ours["updatedAt"]) < syncedAt) return;
  const rowId = String(ours["id"]);
  const id = `${userId} ${collection}/${rowId} gone`;
  await device.lost.put({ id, userId, collection, rowId, fields, at, gone: shared ? "changed" : "unsent" });
}

/**
 * Store the text of rejected rows that the sync replaces. RxDB reports no conflict for them, because they have no
 * pending write. Also delete the conflict losers of deleted rows (see DeviceDatabase.deleteConflictLosers).
 */
export function watchReplacedRows(context: AccountContext): void {
  for (const [name, collection] of Object.entries(context.database.collections)) {
    collection.eventBulks$.subscribe((bulk) => {
      const { events } = bulk;
      const dead = events.filter(({ documentData }) => documentData._deleted);
      const ids = dead.map(({ documentId }) => documentId);
      if (ids.length > 0)
        void context.device.deleteConflictLosers(context.account.userId, name, ids, !isReplicated(bulk));
      if (isLocal(bulk)) return; // only a pulled row can replace a rejected one
      for (const { previousDocumentData, documentData } of events) {
        const [ours, outcome] = [previousDocumentData as any, documentData as any];
        if (!ours?.syncError || outcome.syncError) continue;
        const conflict = { ours, base: undefined, outcome };
        void keepConflictLoser(context.device, context.account.userId, name as Name, conflict);
      }
    });
  }
}

/** Write the text of a conflict loser back into its row as a new edit. Throw `ROW_GONE` if the row does not exist. */
export async function restoreConflictLoser(context: AccountContext, id: string): Promise<void> {
  const lost = await context.device.lost.get(id);
  if (!lost || lost.userId !== context.account.userId) return;
  const row = await context.database.collections[lost.collection as Name].findOne(lost.rowId).exec();
  if (!row) throw new CodedError("ROW_GONE");
  await editRow(row as RxDocument<any>, ({ syncError: _, ...fields }) => ({
    ...fields,
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
