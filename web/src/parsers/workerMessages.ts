/** Messages between the page and the worker that parses one file. */

import type { Code, Parsed } from "./result.ts";

export interface Request {
  name: string;
  bytes: ArrayBuffer;
}

export type Message =
  | { kind: "progress"; stage: string; done: number; total: number }
  | { kind: "parsed"; parsed: Parsed }
  | { kind: "failed"; code: Code };
