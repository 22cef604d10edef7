/** Times of rows. */

/**
 * Now, and in any case after `moment`, when everything was forgotten by the server's clock: what a device makes whose
 * clock is behind would be refused for ever as made before.
 */
export function nowAfter(moment = "", now = Date.now()): string {
  const least = Date.parse(moment) + 1;
  return new Date(least > now ? least : now).toISOString();
}
