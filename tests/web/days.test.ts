/** Days that questions name, and those of rows: the cases that the server answers alike. */

import { asked, ofMoment } from "../../web/src/model/days.ts";
import cases from "../conformance/days.json";

test.each(cases.asked as [string, string][])("the days of %j", (question, marks) => {
  expect(asked(question)).toBe(marks);
});

test.each(cases.moments as [string, string][])("the day of %s", (moment, marks) => {
  expect(ofMoment(moment)).toBe(marks);
});
