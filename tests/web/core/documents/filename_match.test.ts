/** Find the documents that a message names: shared cases. */

import cases from "../../../conformance/filename_match.json";
import { findNamedDocuments } from "../../../../web/src/core/documents/filename_match.ts";

test.each(cases)("findNamedDocuments: $name", ({ message, filenames, named, isCertain }) => {
  const found = findNamedDocuments(
    message,
    filenames.map((filename) => ({ filename })),
  );
  expect(found.documents.map(({ filename }) => filename)).toEqual(named);
  expect(found.isCertain).toBe(isCertain);
});
