/**
 * Validate rows from a file with a JSON Schema. Only the keywords that the files in schemas/ use are
 * supported.
 */

export interface Schema {
  type?: string | readonly string[];
  enum?: readonly unknown[];
  properties?: Record<string, Schema>;
  required?: readonly string[];
  additionalProperties?: unknown;
  items?: Schema;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
}

export function matchesSchema(value: unknown, schema: Schema): boolean {
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length && !types.some((type) => is(value, type))) return false;
  if (schema.enum && !schema.enum.includes(value)) return false;
  if (typeof value === "string") return value.length <= (schema.maxLength ?? Infinity);
  if (typeof value === "number") {
    return value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity);
  }
  if (Array.isArray(value)) return value.every((one) => !schema.items || matchesSchema(one, schema.items));
  return value === null || typeof value !== "object" || fitsObject(value as Record<string, unknown>, schema);
}

function fitsObject(value: Record<string, unknown>, schema: Schema): boolean {
  const known = schema.properties ?? {};
  if (schema.required?.some((name) => !Object.hasOwn(value, name))) return false;
  return Object.entries(value).every(([name, held]) =>
    Object.hasOwn(known, name) ? matchesSchema(held, known[name]!) : schema.additionalProperties !== false,
  );
}

function is(value: unknown, type: string): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return Number.isFinite(value);
  return typeof value === type;
}
