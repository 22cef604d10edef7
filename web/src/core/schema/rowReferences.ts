/** How rows name each other, so that a row can be given another id without losing its own. */

import { RELATIONS, type Relation } from "./relations.ts";
import type { Collections } from "./rows.ts";

type Name = keyof Collections;
type Fields = Record<string, any>;

/** What a row names: what its life or a field of it hangs on, and where a document came from, which may be long gone. */
const NAMED: readonly Pick<Relation, "of" | "field" | "to">[] = [
  ...RELATIONS,
  { of: "documents", field: "originSessionId", to: "sessions" },
];

const fieldsOf = (collection: Name) => NAMED.filter(({ of }) => of === collection);
const parentsOf = (collection: string) =>
  RELATIONS.filter(({ of, onDelete }) => of === collection && onDelete === "cascade");

/** The rows that this one cannot be without. */
export function parents(collection: string, row: Fields): [Name, string][] {
  return parentsOf(collection).flatMap(({ field, to }) =>
    row[field] ? [[to, row[field]] as [Name, string]] : [],
  );
}

/** How many collections stand above this one: sorted by it, parents come before their children. */
export function depth(collection: string): number {
  const above = parentsOf(collection).map(({ to }) => depth(to));
  return above.length && 1 + Math.max(...above);
}

/** Every id that the row names, its own among them. */
export function references(collection: Name, row: Fields): [Name, string][] {
  const ids: [Name, string][] = collection === "vectorEmbeddings" ? [] : [[collection, row["id"]]];
  for (const { field, to } of fieldsOf(collection)) {
    for (const id of [row[field] ?? []].flat()) if (id) ids.push([to, id]);
  }
  for (const { documentId } of row["citations"] ?? []) ids.push(["documents", documentId]);
  return ids;
}

/** The row with all of them put through `rename`. */
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

/** The row without the name of rows that are gone, or marked; the same object if it names none of them. */
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
