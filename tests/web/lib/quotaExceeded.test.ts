/** A browser without room is recognised, however its error is wrapped. */

import Dexie from "dexie";
import { newRxError } from "rxdb/plugins/core";
import { isQuotaExceeded } from "../../../web/src/lib/quotaExceeded.ts";

const wrapped = (parameters: object) => newRxError("RC_PUSH", parameters as never);
const quota = new DOMException("The disk is full.", "QuotaExceededError");

test.each([
  ["as the browser throws it", quota],
  ["inside an aborted transaction", new Dexie.AbortError("Aborted", quota)],
  ["as Dexie names it", new Dexie.QuotaExceededError("No room", quota)],
  ["as RxDB tells of a start", wrapped({ errors: [{ name: "QuotaExceededError", message: "No room" }] })],
  ["as RxDB tells of a write", wrapped({ writeError: { name: "QuotaExceededError" } })],
  ["as a cause", new Error("It could not be stored.", { cause: quota })],
])("%s", (_, error) => expect(isQuotaExceeded(error)).toBe(true));

test.each([new Error("no"), new DOMException("no", "AbortError"), null, undefined, "QuotaExceeded"])(
  "%s is something else",
  (error) => expect(isQuotaExceeded(error)).toBe(false),
);

test("what a person wrote is no error, although RxDB's has it", () => {
  const pushRows = [{ newDocumentState: { id: "e", userMessage: "What is a QuotaExceededError?" } }];
  const errors = [{ name: "Refusal", message: "The server answered 502." }];
  const error = wrapped({ pushRows, errors, direction: "push" });
  expect(error.message).toContain("QuotaExceededError");
  expect(isQuotaExceeded(error)).toBe(false);
});
