/** Extract date terms from questions and rows: shared cases. */

import { dateTerms, queryDateTerms } from "../../../../web/src/core/text/dates_in_text.ts";
import cases from "../../../conformance/dates_in_text.json";

test.each(cases.queries as [string, string][])("queryDateTerms of %j", (query, terms) => {
  expect(queryDateTerms(query, "2026-11-24T15:00:00.000Z")).toBe(terms);
});

test.each(cases.timestamps as [string, string][])("dateTerms of a row created at %s", (timestamp, terms) => {
  expect(dateTerms(timestamp)).toBe(terms);
});

test.each(cases.relative as [string, string, string][])("queryDateTerms of %j at %s", (query, now, terms) => {
  expect(queryDateTerms(query, now)).toBe(terms);
});
