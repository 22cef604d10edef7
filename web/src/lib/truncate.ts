const HALF_SURROGATE = /[\ud800-\udbff]$/;

/**
 * Return at most `maxLength` UTF-16 units of a text without splitting a surrogate pair. Half a pair would be invalid in
 * JSON.
 */
export function truncate(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(HALF_SURROGATE, "");
}
