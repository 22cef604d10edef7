/** Times of rows. */

/**
 * Now, and in any case after `moment`, when everything was forgotten by the server's clock: what a device makes whose
 * clock is behind would be refused for ever as made before.
 */
export function nowAfter(moment = "", now = Date.now()): string {
  const least = Date.parse(moment) + 1;
  return new Date(least > now ? least : now).toISOString();
}

/** Whether rows may have this as a time: as `toISOString` writes it, of a day that there is. */
export function isTimestamp(value: unknown): boolean {
  const at = typeof value === "string" ? new Date(value) : undefined;
  return at !== undefined && !Number.isNaN(at.getTime()) && at.toISOString() === value;
}
