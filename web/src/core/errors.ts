/**
 * Errors of the app itself. A worker transfers only the name and message of an error, so the message of these errors is
 * their code.
 */

export type Code =
  "FULL" | "NEWER_FORM" | "NOT_CARRIED_OVER" | "OPEN_ELSEWHERE" | "UNLOADED" | "OTHER_ACCOUNT" | "ROW_GONE";

/** Error codes of importing an export. */
export type ExportCode =
  "ZIP_TOO_LARGE" | "ZIP_TOO_MANY_FILES" | "ZIP_INFLATES" | "ZIP_DAMAGED" | "ZIP_CUT_OFF" | "NOT_AN_EXPORT";

export class CodedError extends Error {
  override name = "Coded";

  constructor(code: Code | ExportCode, options?: ErrorOptions) {
    super(code, options);
  }
}

export function hasCode(error: unknown, code: Code): boolean {
  return error instanceof Error && error.message === code;
}
