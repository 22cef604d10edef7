/** What to delete when room is short: the shared cases, as tests/unit/model/documents/test_cleanup_candidates.py runs them for the server. */

import cases from "../../../conformance/cleanup_candidates.json";
import { suggestCleanup } from "../../../../web/src/core/documents/cleanup_candidates.ts";

test.each(cases)("$name", ({ documents, count, suggested: expected }) => {
  expect(suggestCleanup(documents, count).map(({ id }) => id)).toEqual(expected);
});
