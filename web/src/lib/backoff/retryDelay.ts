/** How long it takes until a server that refused something for now is asked again. */

const FIRST_MS = 5_000;
const MAX_MS = 600_000;

/** Twice as long after every try in vain, and no sooner than the server says; ten minutes at most. */
export function retryDelayMs(attempts: number, retryAfterS = 0): number {
  return Math.min(MAX_MS, Math.max(FIRST_MS * 2 ** attempts, retryAfterS * 1000));
}
