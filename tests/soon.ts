/** Waits until the check holds, which it does soon on a quiet machine and late on a busy one. */
export function soon<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 60_000 });
}
