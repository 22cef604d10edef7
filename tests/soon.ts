/** Retry a check until it passes, for up to a minute on a busy machine. */
export function soon<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 60_000 });
}
