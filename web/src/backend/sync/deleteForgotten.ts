/**
 * Rows that were refused are here and not on the server, and what belongs to them it held as waiting at most: "forget
 * everything" leaves no tombstone of either for this device to pull. The server says instead, beside every checkpoint,
 * when everything was forgotten last.
 */

import type { RxCollection } from "rxdb/plugins/core";
import { depth, parents } from "../../core/schema/rowReferences.ts";
import type { Row } from "../../core/sync/twoWayMerge.ts";
import { bury } from "../../storage/tombstoneRows.ts";
import type { ServerStateStore } from "./replication.ts";

export class ForgottenRowSweeper {
  readonly #collections: Record<string, RxCollection>;
  readonly #stateStore: ServerStateStore;
  #appliedAt: string | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(collections: Record<string, RxCollection>, known: ServerStateStore) {
    this.#collections = collections;
    this.#stateStore = known;
  }

  /**
   * Resolves when what was refused before `forgottenAt` is gone from here, with all that belongs to it. All collections
   * say it; one is heeded.
   */
  apply(forgottenAt: string | undefined): Promise<void> {
    if (!forgottenAt) return Promise.resolve();
    return (this.#running = this.#running.catch(() => {}).then(() => this.#sweep(forgottenAt)));
  }

  async #sweep(forgottenAt: string): Promise<void> {
    this.#appliedAt ??= (await this.#stateStore.load()).forgottenAt ?? "";
    if (forgottenAt <= this.#appliedAt) return;
    const parentsFirst = Object.keys(this.#collections).sort((a, b) => depth(a) - depth(b));
    for (const name of parentsFirst) await sweepCollection(this.#collections, name, forgottenAt);
    await this.#stateStore.save({ forgottenAt });
    this.#appliedAt = forgottenAt;
  }
}

/**
 * Deletes as the app does, so that no content stays; the server accepts deletes of rows that it does not know. What was
 * refused afterwards stays, in its owner's hands: the refusal tells them that everything was forgotten.
 */
async function sweepCollection(
  collections: Record<string, RxCollection>,
  name: string,
  forgottenAt: string,
): Promise<void> {
  const collection = collections[name]!;
  const old = await collection.find({ selector: { createdAt: { $lt: forgottenAt } } }).exec();
  const isOrphan = await createOrphanTest(collections, name, old);
  const shouldDelete = (row: Row) => wasRejectedBefore(row, forgottenAt) || isOrphan(row);
  await bury(
    old.filter((row) => shouldDelete(row.toJSON())),
    { goes: shouldDelete },
  );
}

/** Tells which of the rows have a parent that is not here. No row from before can have one that is still to come. */
async function createOrphanTest(
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
    const present = await collections[parent]?.findByIds([...ids]).exec();
    for (const id of ids) if (present && !present.has(id)) missing.add(`${parent}/${id}`);
  }
  return (row) => parents(name, row).some(([parent, id]) => missing.has(`${parent}/${id}`));
}

function wasRejectedBefore(row: Row, moment: string): boolean {
  const error = row["syncError"] as { at: string } | undefined;
  return error !== undefined && error.at < moment;
}
