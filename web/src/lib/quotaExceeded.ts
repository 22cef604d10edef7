/** Whether the browser refused to store something because its disk, or its share of it, is full. */
export function isQuotaExceeded(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { name, message, inner, cause, rxdb, parameters } = error as Record<string, any>;
  // What RxDB says of an error has the rows in it that were to be written: whatever a person wrote.
  if (rxdb) return [parameters?.writeError, ...(parameters?.errors ?? [])].some(hasQuotaName);
  // Dexie wraps what the browser threw in several ways.
  return (
    /QuotaExceeded/u.test(`${String(name)} ${String(message)}`) ||
    isQuotaExceeded(inner) ||
    isQuotaExceeded(cause)
  );
}

function hasQuotaName(error: { name?: unknown } | undefined): boolean {
  return /QuotaExceeded/u.test(String(error?.name));
}
