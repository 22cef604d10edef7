/**
 * Cascade deletes on this device, as server/vademecum/model/sync/cascade.py does for synced deletes. A row is
 * deleted with any of its parents. A row with another reference to a deleted row is deleted, loses the
 * reference or gets a flag. Both sides use the same table of relations (core/schema/relations.ts).
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
 * Delete rows and their dependents, and remove references to them from other rows. The ids may belong to rows
 * that never existed on this device; their dependents are deleted as well.
 */
export async function deleteWithDependents(database: AccountDatabase, ids: Keys): Promise<void> {
  const levels: Level[] = [];
  let level: Level = new Map(Object.entries(ids) as [Name, readonly string[]][]);
  for (; level.size > 0; level = withoutSeen(await dependents(database, level), levels)) levels.push(level);
  const at = now();
  // Delete children first: if the page is closed meanwhile, the remaining rows are visible and can be deleted
  // again.
  for (const [name, ids] of levels.reverse().flatMap((one) => [...one])) {
    const found = collectionOf(database, name).findByIds([...ids]);
    await putTombstones([...(await found.exec()).values()], { at });
  }
  for (const relation of RELATIONS) {
    const gone = levels.flatMap((one) => one.get(relation.to) ?? []);
    if (gone.length > 0 && relation.onDelete !== "cascade")
      await dropReferences(database, relation, new Set(gone));
  }
}

/** Return a level without the rows of earlier levels, because memories may supersede each other in a cycle. */
function withoutSeen(level: Level, before: readonly Level[]): Level {
  const left = [...level].map(([name, ids]) => {
    const seen = new Set(before.flatMap((one) => one.get(name) ?? []));
    return [name, ids.filter((id) => !seen.has(id))] as const;
  });
  return new Map(left.filter(([, ids]) => ids.length > 0));
}

/** Return the rows that must be deleted with the `dead` rows: their children and followers. */
async function dependents(database: AccountDatabase, dead: Level) {
  const level = new Map<Name, readonly string[]>();
  for (const relation of RELATIONS) {
    const ids = dead.get(relation.to) ?? [];
    if (ids.length === 0 || !["cascade", "follow"].includes(relation.onDelete)) continue;
    for (const selector of selectors(relation, ids)) {
      const named = await collectionOf(database, relation.of).find({ selector }).exec();
      const rows = relation.onDelete === "cascade" ? named : await followers(database, relation, named);
      const held = level.get(relation.of) ?? [];
      if (rows.length > 0) level.set(relation.of, [...held, ...rows.map((row) => row.primary)]);
    }
  }
  return level;
}

/** Return the rows among `rows` that have the same parents as the row they reference. */
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
    const gone = dead.get(row.get(field));
    return gone !== undefined && home(gone) === home(row);
  });
}

/**
 * Return selectors for the rows that reference `ids`. Blocks use an id range, because a query by field scans
 * all.
 */
export function selectors({ of: name, field }: Relation, ids: readonly string[]): MangoQuerySelector<Row>[] {
  if (name === "vectorEmbeddings") return ids.map((id) => ({ id: childIdRange(id) }));
  return [{ [field]: ids.length === 1 ? ids[0] : { $in: [...ids] } }];
}

/** Remove dangling references. `updatedAt` stays, because no user edited the row. */
async function dropReferences(
  database: AccountDatabase,
  relation: Relation,
  gone: ReadonlySet<string>,
): Promise<void> {
  const rows = await collectionOf(database, relation.of).find().exec();
  const hurt = rows.filter((row) => dropDanglingReferences(relation, row._data, gone) !== row._data);
  await Promise.all(hurt.map((row) => editRow(row, (held) => dropDanglingReferences(relation, held, gone))));
}

function collectionOf(database: AccountDatabase, name: Name): RxCollection<Row> {
  return database.collections[name] as unknown as RxCollection<Row>;
}
