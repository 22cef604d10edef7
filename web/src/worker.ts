/** Where the app runs. */

import { expose, transferHandlers } from "comlink";
import { SignInApi } from "./backend/api/signInApi.ts";
import { CodedError } from "./core/errors.ts";
import { isQuotaExceeded } from "./lib/quotaExceeded.ts";

// Of an error only its name and its message come out: that there is no room is often said by what it wraps.
const thrown = transferHandlers.get("throw")!;
transferHandlers.set("throw", {
  ...thrown,
  serialize: (error) =>
    thrown.serialize(
      isQuotaExceeded((error as { value: unknown }).value) ? { value: new CodedError("FULL") } : error,
    ),
});

expose(new SignInApi());
