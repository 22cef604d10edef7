/** Entry point of the worker. */

import { expose, transferHandlers } from "comlink";
import { SignInApi } from "./backend/api/signInApi.ts";
import { CodedError } from "./core/errors.ts";
import { isQuotaExceeded } from "./lib/quotaExceeded.ts";

// Only the name and message of an error reach the page, but often only the cause shows that the disk is full.
const thrown = transferHandlers.get("throw")!;
transferHandlers.set("throw", {
  ...thrown,
  serialize: (error) =>
    thrown.serialize(
      isQuotaExceeded((error as { value: unknown }).value) ? { value: new CodedError("FULL") } : error,
    ),
});

expose(new SignInApi());
