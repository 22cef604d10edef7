/** Recognize a full browser storage, however the error is wrapped. */

import Dexie from "dexie";
import { newRxError } from "rxdb/plugins/core";
import { isQuotaExceeded } from "../../../web/src/lib/quotaExceeded.ts";

const wrapped = (parameters: object) => newRxError("RC_PUSH", parameters as never);
const quota = new DOMException("The disk is full.", "QuotaExceededError");

test.each([
  ["as the browser throws it", quota],
  ["inside an aborted transaction", new Dexie.AbortError("Aborted", quota)],
  ["as Dexie names it", new Dexie.QuotaExceededError("No room", quota)],
  [
    "as RxDB reports a failed start",
    wrapped({ errors: [{ name: "QuotaExceededError", message: "No room" }] }),
  ],
  ["as RxDB reports a failed write", wrapped({ writeError: { name: "QuotaExceededError" } })],
  ["as the cause of another error", new Error("It could not be stored.", { cause: quota })],
])("a quota error is recognized %s", (_, error) => expect(isQuotaExceeded(error)).toBe(true));

test.each([new Error("no"), new DOMException("no", "AbortError"), null, undefined, "QuotaExceeded"])(
  "%s is not a quota error",
  (error) => expect(isQuotaExceeded(error)).toBe(false),
);

test("user text that names a quota error is not taken for one", () => {
  const pushRows = [{ newDocumentState: { id: "e", userMessage: "What is a QuotaExceededError?" } }];
  const errors = [{ name: "Refusal", message: "The server answered 502." }];
  const error = wrapped({ pushRows, errors, direction: "push" });
  expect(error.message).toContain("QuotaExceededError");
  expect(isQuotaExceeded(error)).toBe(false);
});
