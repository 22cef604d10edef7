/** Forget everything on the server. The devices follow through the sync. */

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

/** Resolve when the server has erased and verified. */
export function forgetEverything({ server }: AccountContext): Promise<ErasureReceipt> {
  const init = { method: "POST", body: JSON.stringify({ confirm: "forget everything" }) };
  return requestJson<ErasureReceipt>(server, "/v1/forget", init, ERASURE_TIMEOUT_MS);
}
