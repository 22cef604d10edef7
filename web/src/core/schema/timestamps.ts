/** Timestamps of rows. */

/**
 * Return the current time, or one millisecond after `moment` if that is later. `moment` is the server's time of the
 * last "forget everything". Without this minimum, a device with a slow clock would create rows that the server rejects
 * as older.
 */
export function nowAfter(moment = "", now = Date.now()): string {
  const least = Date.parse(moment) + 1;
  return new Date(least > now ? least : now).toISOString();
}

/** Return whether a value is a valid timestamp of a row: an existing time in the format of `toISOString`. */
export function isTimestamp(value: unknown): boolean {
  const at = typeof value === "string" ? new Date(value) : undefined;
  return at !== undefined && !Number.isNaN(at.getTime()) && at.toISOString() === value;
}
