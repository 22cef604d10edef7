/** References between rows: find the parents of a row, rename the ids in it, and remove references to deleted rows. */

import { RELATIONS, type Relation } from "./relations.ts";
import type { Collections } from "./rows.ts";

type Name = keyof Collections;
type Fields = Record<string, any>;

/**
 * All fields that contain ids of other rows: those of the relations, and the session that a document came from, which
 * may have been deleted.
 */
const NAMED: readonly Pick<Relation, "of" | "field" | "to">[] = [
  ...RELATIONS,
  { of: "documents", field: "originSessionId", to: "sessions" },
];

const fieldsOf = (collection: Name) => NAMED.filter(({ of }) => of === collection);
const parentsOf = (collection: string) =>
  RELATIONS.filter(({ of, onDelete }) => of === collection && onDelete === "cascade");

/** Return the parents of a row. When a parent is deleted, the row is deleted, too. */
export function parents(collection: string, row: Fields): [Name, string][] {
  return parentsOf(collection).flatMap(({ field, to }) =>
    row[field] ? [[to, row[field]] as [Name, string]] : [],
  );
}

/**
 * Return the number of levels of parents above a collection. Sorting collections by this number puts parents before
 * their children.
 */
export function depth(collection: string): number {
  const above = parentsOf(collection).map(({ to }) => depth(to));
  return above.length && 1 + Math.max(...above);
}

/**
 * Return the collection and id of the row itself and of each row that it references. The id of a block is omitted,
 * because it follows from the document's id.
 */
export function references(collection: Name, row: Fields): [Name, string][] {
  const ids: [Name, string][] = collection === "vectorEmbeddings" ? [] : [[collection, row["id"]]];
  for (const { field, to } of fieldsOf(collection)) {
    for (const id of [row[field] ?? []].flat()) if (id) ids.push([to, id]);
  }
  for (const { documentId } of row["citations"] ?? []) ids.push(["documents", documentId]);
  return ids;
}

/** Return the row with every id that it contains replaced by the result of `rename`. */
export function renameIds(
  collection: Name,
  row: Fields,
  rename: (target: Name, id: string) => string,
): Fields {
  const changed = { ...row };
  for (const { field, to } of fieldsOf(collection)) {
    const held = row[field];
    if (Array.isArray(held)) changed[field] = held.map((id) => rename(to, id));
    else if (held) changed[field] = rename(to, held);
  }
  if (row["citations"]) {
    changed["citations"] = row["citations"].map((one: Fields) => ({
      ...one,
      documentId: rename("documents", one["documentId"]),
    }));
  }
  changed["id"] =
    collection === "vectorEmbeddings"
      ? `${changed["documentId"]}.${row["block"]}`
      : rename(collection, row["id"]);
  return changed;
}

/**
 * Return the row without references to the rows in `gone`, or with its flag set. Return the row itself if nothing has
 * to change.
 */
export function dropDanglingReferences(
  { field, onDelete, flagField }: Relation,
  row: Fields,
  gone: ReadonlySet<string>,
): Fields {
  const held = row[field];
  if (Array.isArray(held)) {
    return held.some((id) => gone.has(id)) ? { ...row, [field]: held.filter((id) => !gone.has(id)) } : row;
  }
  if (!gone.has(held)) return row;
  if (onDelete === "flag") return row[flagField!] ? row : { ...row, [flagField!]: true };
  const { [field]: _, ...rest } = row;
  return rest;
}
