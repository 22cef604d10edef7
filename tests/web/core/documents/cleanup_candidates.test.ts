/** What to delete when room is short: the shared cases, as tests/unit/model/documents/test_cleanup_candidates.py runs them for the server. */

import cases from "../../../conformance/cleanup_candidates.json";
import { suggested } from "../../../../web/src/core/documents/cleanup_candidates.ts";

test.each(cases)("$name", ({ documents, count, suggested: expected }) => {
  expect(suggested(documents, count).map(({ id }) => id)).toEqual(expected);
});
