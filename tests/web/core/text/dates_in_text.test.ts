/** Days that questions name, and those of rows: the cases that the server answers alike. */

import { asked, ofMoment } from "../../../../web/src/core/text/dates_in_text.ts";
import cases from "../../../conformance/days.json";

test.each(cases.asked as [string, string][])("the days of %j", (question, marks) => {
  expect(asked(question, "2026-11-24T15:00:00.000Z")).toBe(marks);
});

test.each(cases.moments as [string, string][])("the day of %s", (moment, marks) => {
  expect(ofMoment(moment)).toBe(marks);
});

test.each(cases.fromNow as [string, string, string][])("%j, asked on %s", (question, now, marks) => {
  expect(asked(question, now)).toBe(marks);
});
