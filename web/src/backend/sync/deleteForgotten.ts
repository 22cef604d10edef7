/**
 * Delete rejected rows and their dependents after a "forget everything". The server does not have these rows and sends
 * no tombstones for them. Instead, the pages that it sends contain the time of the last "forget everything".
 */

import type { RxCollection } from "rxdb/plugins/core";
import { depth, parents } from "../../core/schema/rowReferences.ts";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { putTombstones } from "../../storage/tombstoneRows.ts";
import type { ServerKnowledgeStore } from "./replication.ts";

export class ForgottenRows {
  readonly #collections: Record<string, RxCollection>;
  readonly #store: ServerKnowledgeStore;
  #handled: string | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(collections: Record<string, RxCollection>, known: ServerKnowledgeStore) {
    this.#collections = collections;
    this.#store = known;
  }

  /**
   * Delete rows that were rejected before `forgottenAt`. Every collection reports this time, but it is applied once.
   */
  apply(forgottenAt: string | undefined): Promise<void> {
    if (!forgottenAt) return Promise.resolve();
    return (this.#last = this.#last.catch(() => {}).then(() => this.#deleteBefore(forgottenAt)));
  }

  async #deleteBefore(forgottenAt: string): Promise<void> {
    this.#handled ??= (await this.#store.load()).forgottenAt ?? "";
    if (forgottenAt <= this.#handled) return;
    const parentsFirst = Object.keys(this.#collections).sort((a, b) => depth(a) - depth(b));
    for (const name of parentsFirst) await deleteRejectedBefore(this.#collections, name, forgottenAt);
    await this.#store.save({ forgottenAt });
    this.#handled = forgottenAt;
  }
}

/**
 * Replace rows that were rejected before `forgottenAt`, and their dependents, by tombstones; the server accepts deletes
 * of unknown rows. Rows that were rejected later stay, and their rejection message tells the user that everything was
 * forgotten.
 */
async function deleteRejectedBefore(
  collections: Record<string, RxCollection>,
  name: string,
  forgottenAt: string,
): Promise<void> {
  const collection = collections[name]!;
  const old = await collection.find({ selector: { createdAt: { $lt: forgottenAt } } }).exec();
  const isOrphan = await orphanTest(collections, name, old);
  const goes = (row: Row) => wasRefusedBefore(row, forgottenAt) || isOrphan(row);
  await putTombstones(
    old.filter((row) => goes(row.toJSON())),
    { goes },
  );
}

/**
 * Return a test for rows whose parent is not on this device. All tested rows are so old that their parent can no longer
 * arrive.
 */
async function orphanTest(
  collections: Record<string, RxCollection>,
  name: string,
  rows: readonly Row[],
): Promise<(row: Row) => boolean> {
  const parentIds = new Map<string, Set<string>>();
  for (const [parent, id] of rows.flatMap((row) => parents(name, row))) {
    parentIds.set(parent, (parentIds.get(parent) ?? new Set()).add(id));
  }
  const missing = new Set<string>();
  for (const [parent, ids] of parentIds) {
    const here = await collections[parent]?.findByIds([...ids]).exec();
    for (const id of ids) if (here && !here.has(id)) missing.add(`${parent}/${id}`);
  }
  return (row) => parents(name, row).some(([parent, id]) => missing.has(`${parent}/${id}`));
}

function wasRefusedBefore(row: Row, moment: string): boolean {
  const error = row["syncError"] as { at: string } | undefined;
  return error !== undefined && error.at < moment;
}
