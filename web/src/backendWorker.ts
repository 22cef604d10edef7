/** Entry point of the web worker: makes the backend's API available to the page. */

import { expose, transferHandlers } from "comlink";
import { SignInApi } from "./backend/api/signInApi.ts";
import { CodedError } from "./core/errors.ts";
import { isQuotaExceeded } from "./lib/quotaExceeded.ts";

// Comlink sends only an error's name, message and stack to the page. Often only the error's cause shows that the disk
// is full, so send the code FULL instead of such an error.
const thrown = transferHandlers.get("throw")!;
transferHandlers.set("throw", {
  ...thrown,
  serialize: (error) =>
    thrown.serialize(
      isQuotaExceeded((error as { value: unknown }).value) ? { value: new CodedError("FULL") } : error,
    ),
});

expose(new SignInApi());
