/** Forgets everything, on the server first: the devices follow it. */

import { request } from "../../lib/http.ts";
import type { House } from "./accountContext.ts";

/** The server is silent while it erases. */
const ERASING_MS = 600_000;

export interface ErasureReceipt {
  rows: number;
  files: number;
  bytes: number;
  at: string;
  checked: number;
  leftovers: number;
}

/** Answers when the server has erased and checked. */
export function forgetEverything({ wire }: House): Promise<ErasureReceipt> {
  const init = { method: "POST", body: JSON.stringify({ confirm: "forget everything" }) };
  return request<ErasureReceipt>(wire, "/v1/forget", init, ERASING_MS);
}
