/**
 * Convert errors to messages for the user. An error of the worker reaches the page only with its name and message, so
 * its class cannot be checked.
 */

import { t, type TextKey } from "../locale/t.ts";
import type { Code } from "../core/errors.ts";

const TEXTS: Record<Code, TextKey> = {
  FULL: "errors.full",
  NEWER_FORM: "app.start.outdated",
  NOT_CARRIED_OVER: "app.start.notCarriedOver",
  OPEN_ELSEWHERE: "errors.openElsewhere",
  UNLOADED: "errors.loadFailed",
  OTHER_ACCOUNT: "errors.otherAccount",
  ROW_GONE: "errors.itemGone",
};

/** Return a message for the user about an error. */
export function errorMessage(error: unknown): string {
  if (isUnreachable(error)) return t("app.unreachable");
  const { name, message } = error as Error;
  return name === "Coded" ? t(TEXTS[message as Code]) : message;
}

/** Return whether a request did not reach the server, or did not get a response in time. */
export function isUnreachable(error: unknown): boolean {
  return ["Unreachable", "TimeoutError"].includes((error as Error).name);
}
