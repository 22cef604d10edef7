/** Tombstones of deleted rows. They keep ids, parents and timestamps; all other fields are blanked. */

interface Field {
  type?: string | readonly string[];
  enum?: readonly unknown[];
  minimum?: number;
}

interface Schema {
  properties: Record<string, unknown>;
  required?: readonly string[];
}

const KEPT_FIELDS = new Set([
  "id",
  "createdAt",
  "updatedAt",
  "documentId",
  "sessionId",
  "projectId",
  "fromId",
  "toId",
]);

/**
 * Return the tombstone of a row. Required fields are blanked rather than removed, so that the row matches its
 * schema.
 */
export function toTombstone<Row extends object>(row: Row, schema: Schema): Row {
  const required = new Set(schema.required ?? []);
  const blanked: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(row)) {
    if (name.startsWith("_") || KEPT_FIELDS.has(name)) blanked[name] = value;
    else if (required.has(name)) blanked[name] = blankOf(schema.properties[name] as Field);
  }
  return { ...blanked, _deleted: true } as unknown as Row;
}

function blankOf({ type, enum: values, minimum = 0 }: Field): unknown {
  if (values) return values[0];
  const types = Array.isArray(type) ? type : [type];
  if (types.includes("null")) return null;
  if (types.includes("array")) return [];
  if (types.includes("boolean")) return false;
  return types.includes("string") ? "" : minimum;
}
