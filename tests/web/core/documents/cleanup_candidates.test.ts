/** Suggest documents to delete at the limit: the shared cases of the server's test_cleanup_candidates.py. */

import cases from "../../../conformance/cleanup_candidates.json";
import { suggestCleanup } from "../../../../web/src/core/documents/cleanup_candidates.ts";

test.each(cases)("suggestCleanup: $name", ({ documents, count, suggested: expected }) => {
  expect(suggestCleanup(documents, count).map(({ id }) => id)).toEqual(expected);
});
