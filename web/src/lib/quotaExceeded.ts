/** Return whether a write failed because the disk is full or the browser's quota is used up. */
export function isQuotaExceeded(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { name, message, inner, cause, rxdb, parameters } = error as Record<string, any>;
  // Do not search the message of an RxDB error: it contains the written rows, so the user's text could match.
  if (rxdb) return [parameters?.writeError, ...(parameters?.errors ?? [])].some(hasQuotaName);
  // Dexie wraps the browser's error in several ways.
  return (
    /QuotaExceeded/u.test(`${String(name)} ${String(message)}`) ||
    isQuotaExceeded(inner) ||
    isQuotaExceeded(cause)
  );
}

function hasQuotaName(error: { name?: unknown } | undefined): boolean {
  return /QuotaExceeded/u.test(String(error?.name));
}
