/** An error in words for people. Only its name and its message come out of the worker. */

import type { Code } from "../core/errors.ts";
import { words } from "./words.ts";
import { problems } from "./words/problems.ts";

export function said(error: unknown): string {
  if (isUnreachable(error)) return words.places.unreachable;
  const { name, message } = error as Error;
  return name === "Coded" ? problems[message as Code] : message;
}

/** A request that found no server, or one that said nothing. */
export function isUnreachable(error: unknown): boolean {
  return ["Unreachable", "TimeoutError"].includes((error as Error).name);
}
