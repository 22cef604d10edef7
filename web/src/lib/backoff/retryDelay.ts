/** How long it takes until a server that refused something for now is asked again. */

const FIRST_MS = 5_000;
const MOST_MS = 600_000;

/** Twice as long after every try in vain, and no sooner than the server says; ten minutes at most. */
export function retryMs(tries: number, retryAfterS = 0): number {
  return Math.min(MOST_MS, Math.max(FIRST_MS * 2 ** tries, retryAfterS * 1000));
}
