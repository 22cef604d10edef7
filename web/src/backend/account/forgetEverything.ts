/** Forget everything on the server. Devices delete their rows when they sync. */

import { requestJson } from "../../lib/http.ts";
import type { AccountContext } from "./accountContext.ts";

/** Idle timeout of the request. The server sends nothing while it erases. */
const ERASURE_TIMEOUT_MS = 600_000;

export interface ErasureReceipt {
  rows: number;
  files: number;
  bytes: number;
  at: string;
  checked: number;
  leftovers: number;
}

/** Forget everything. Return the receipt once the server has erased the data and checked that none is left. */
export function forgetEverything({ server }: AccountContext): Promise<ErasureReceipt> {
  const init = { method: "POST", body: JSON.stringify({ confirm: "forget everything" }) };
  return requestJson<ErasureReceipt>(server, "/v1/forget", init, ERASURE_TIMEOUT_MS);
}
