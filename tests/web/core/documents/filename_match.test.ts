/** Which documents a question is about: the shared cases, as tests/unit/model/documents/test_filename_match.py runs them for the server. */

import cases from "../../../conformance/filename_match.json";
import { askedAbout } from "../../../../web/src/core/documents/filename_match.ts";

test.each(cases)("$name", ({ message, filenames, askedAbout: expected, surely }) => {
  const found = askedAbout(
    message,
    filenames.map((filename) => ({ filename })),
  );
  expect(found.documents.map(({ filename }) => filename)).toEqual(expected);
  expect(found.surely).toBe(surely);
});
