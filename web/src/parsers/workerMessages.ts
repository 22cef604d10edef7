/** What the page and the worker that reads one file say to each other. */

import type { Code, Read } from "./result.ts";

export interface Request {
  name: string;
  bytes: ArrayBuffer;
}

export type Message =
  | { kind: "progress"; stage: string; done: number; total: number }
  | { kind: "read"; read: Read }
  | { kind: "refused"; code: Code };
