/**
 * Cascade deletes on this device, as server/vademecum/model/sync/cascade.py does for synced deletes. When a row is
 * deleted, its children are deleted, too. Any other row that references it is deleted, loses the reference or gets a
 * flag. Both sides use the same table of relations (core/schema/relations.ts).
 */

import type { MangoQuerySelector, RxCollection, RxDocument } from "rxdb/plugins/core";
import { editRow } from "../../storage/editRow.ts";
import type { AccountDatabase } from "../../storage/accountDatabase.ts";
import { putTombstones } from "../../storage/tombstoneRows.ts";
import { dropDanglingReferences, parents } from "../../core/schema/rowReferences.ts";
import { RELATIONS, type Relation } from "../../core/schema/relations.ts";
import type { Collections } from "../../core/schema/rows.ts";
import { childIdRange, now } from "../account/accountContext.ts";

type Name = keyof Collections;
type Row = Record<string, any>;
/** Ids of rows by collection. */
type Keys = { readonly [name in Name]?: readonly string[] };
type Level = ReadonlyMap<Name, readonly string[]>;

/**
 * Delete rows and their dependents, and remove references to them from other rows. The dependents are also deleted if
 * the row itself never existed on this device.
 */
export async function deleteWithDependents(database: AccountDatabase, ids: Keys): Promise<void> {
  const levels: Level[] = [];
  let level: Level = new Map(Object.entries(ids) as [Name, readonly string[]][]);
  for (; level.size > 0; level = withoutSeen(await dependents(database, level), levels)) levels.push(level);
  const at = now();
  // Delete children first: if the page is closed halfway, the parents are still visible and can be deleted again.
  for (const [name, ids] of levels.reverse().flatMap((one) => [...one])) {
    const found = collectionOf(database, name).findByIds([...ids]);
    await putTombstones([...(await found.exec()).values()], { at });
  }
  for (const relation of RELATIONS) {
    const deletedIds = levels.flatMap((one) => one.get(relation.to) ?? []);
    if (deletedIds.length > 0 && relation.onDelete !== "cascade")
      await dropReferences(database, relation, new Set(deletedIds));
  }
}

/**
 * Return `level` without the rows of earlier levels. Otherwise, deletion would not end for memories that supersede each
 * other in a cycle.
 */
function withoutSeen(level: Level, before: readonly Level[]): Level {
  const left = [...level].map(([name, ids]) => {
    const seen = new Set(before.flatMap((one) => one.get(name) ?? []));
    return [name, ids.filter((id) => !seen.has(id))] as const;
  });
  return new Map(left.filter(([, ids]) => ids.length > 0));
}

/**
 * Return the rows that must be deleted with the rows in `dead`: their children and their followers (see `followers`).
 */
async function dependents(database: AccountDatabase, dead: Level) {
  const level = new Map<Name, readonly string[]>();
  for (const relation of RELATIONS) {
    const ids = dead.get(relation.to) ?? [];
    if (ids.length === 0 || !["cascade", "follow"].includes(relation.onDelete)) continue;
    for (const selector of selectors(relation, ids)) {
      const references = await collectionOf(database, relation.of).find({ selector }).exec();
      const rows =
        relation.onDelete === "cascade" ? references : await followers(database, relation, references);
      const earlier = level.get(relation.of) ?? [];
      if (rows.length > 0) level.set(relation.of, [...earlier, ...rows.map((row) => row.primary)]);
    }
  }
  return level;
}

/** Return those of `rows` that have the same parents as the row that their `field` references. */
async function followers(
  database: AccountDatabase,
  { of: name, field, to }: Relation,
  rows: readonly RxDocument<Row>[],
) {
  const dead = await collectionOf(database, to)
    .findByIds(rows.map((row) => row.get(field)))
    .exec();
  const home = (row: RxDocument<Row>) => JSON.stringify(parents(name, row._data));
  return rows.filter((row) => {
    const target = dead.get(row.get(field));
    return target !== undefined && home(target) === home(row);
  });
}

/**
 * Return selectors for the rows that reference `ids`. Blocks are selected by a range of ids, because a query by
 * `documentId` would scan all blocks.
 */
export function selectors({ of: name, field }: Relation, ids: readonly string[]): MangoQuerySelector<Row>[] {
  if (name === "vectorEmbeddings") return ids.map((id) => ({ id: childIdRange(id) }));
  return [{ [field]: ids.length === 1 ? ids[0] : { $in: [...ids] } }];
}

/** Remove references to deleted rows. `updatedAt` stays, because no user edited the row. */
async function dropReferences(
  database: AccountDatabase,
  relation: Relation,
  deletedIds: ReadonlySet<string>,
): Promise<void> {
  const rows = await collectionOf(database, relation.of).find().exec();
  const affected = rows.filter(
    (row) => dropDanglingReferences(relation, row._data, deletedIds) !== row._data,
  );
  await Promise.all(
    affected.map((row) => editRow(row, (current) => dropDanglingReferences(relation, current, deletedIds))),
  );
}

function collectionOf(database: AccountDatabase, name: Name): RxCollection<Row> {
  return database.collections[name] as unknown as RxCollection<Row>;
}
