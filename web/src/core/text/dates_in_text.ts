/**
 * Extract date terms, which match a question that names a date with the rows of that date. This module mirrors
 * server/vademecum/model/text/dates_in_text.py, which explains the rules; both are tested with
 * tests/conformance/dates_in_text.json.
 */

const GAP = "[ \\t\\r\\n\u00a0]"; // not \s, which differs between Python and JavaScript
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const NAME =
  "(?<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|" +
  "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\b\\.?";
const DAY = "(?<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?";
const MONTH = "(?<month>0?[1-9]|1[0-2])";
const YEAR = "(?<year>(?:19|20)[0-9]{2})";
// The forms are applied in this order, and each form removes the text that it matches. A month name counts only with a
// day, a year or a preposition, because a bare `May` or `March` may be another word.
const DATE_FORMS = [
  `${YEAR}-${MONTH}-${DAY}`,
  `${DAY}\\.${GAP}?${MONTH}\\.${GAP}?${YEAR}`,
  `${DAY}\\.?${GAP}+(?:of${GAP}+)?${NAME}(?:,?${GAP}+${YEAR})?`,
  `${NAME}${GAP}+${DAY}(?:,?${GAP}+${YEAR})?`,
  `${NAME},?${GAP}+(?:of${GAP}+)?${YEAR}`,
  `(?:in|of|last|since|during|until|before|after)${GAP}+${NAME}`,
  YEAR,
].map((form) => new RegExp(`(?<![\\w.,-])(?:${form})(?![\\w-])`, "gi"));

const RELATIVE_DATE = new RegExp(
  `(?<![\\w-])(?:(?<day>today|yesterday)|(?<which>this|last)${GAP}+(?<span>week|month|year))(?![\\w-])`,
  "gi",
);
const DAY_MS = 86_400_000;

type Groups = Record<string, string | undefined>;

/** Return the date terms of a row's timestamp: day and month with and without the year, and the year. */
export function dateTerms(timestamp: string): string {
  const [year, month, day] = [timestamp.slice(0, 4), timestamp.slice(5, 7), timestamp.slice(8, 10)];
  return `day${year}${month}${day} day${month}${day} month${year}${month} month${month} year${year}`;
}

/** Return the date terms of the dates that a query names, or "" if it names none. `now` is a timestamp. */
export function queryDateTerms(query: string, now: string): string {
  const today = Date.parse(now.slice(0, 10));
  const terms = [...query.matchAll(RELATIVE_DATE)].flatMap(({ groups }) => relativeTerms(groups!, today));
  let rest = query;
  for (const form of DATE_FORMS) {
    terms.push(...[...rest.matchAll(form)].flatMap(({ groups }) => absoluteTerms(groups!)));
    rest = rest.replace(form, " ");
  }
  return [...new Set(terms)].join(" ");
}

function absoluteTerms({ year = "", name, month: digits, day }: Groups): string[] {
  const month = digits ?? (name ? String(MONTHS.indexOf(name.slice(0, 3).toLowerCase()) + 1) : "");
  if (!month) return [`year${year}`];
  const prefix = year + month.padStart(2, "0");
  return day ? [`day${prefix}${day.padStart(2, "0")}`, `month${prefix}`] : [`month${prefix}`];
}

/**
 * Return the date terms of a relative date. `today` is midnight in ms. A week begins on Monday, and "this week" ends
 * today.
 */
function relativeTerms({ day, which, span }: Groups, today: number): string[] {
  const isLast = which?.toLowerCase() === "last";
  const sinceMonday = (new Date(today).getUTCDay() + 6) % 7;
  const dayTerm = (ago: number) => `day${compactDate(today - ago * DAY_MS)}`;
  if (day) return [dayTerm(day.toLowerCase() === "yesterday" ? 1 : 0)];
  switch (span?.toLowerCase()) {
    case "week": {
      const [first, count] = isLast ? [sinceMonday + 7, 7] : [sinceMonday, sinceMonday + 1];
      return Array.from({ length: count }, (_, at) => dayTerm(first - at));
    }
    case "month": {
      const first = today - (new Date(today).getUTCDate() - 1) * DAY_MS;
      return [`month${compactDate(first - (isLast ? DAY_MS : 0)).slice(0, 6)}`];
    }
    default:
      return [`year${new Date(today).getUTCFullYear() - (isLast ? 1 : 0)}`];
  }
}

/** Format a time as a date such as `20261124`. */
function compactDate(time: number): string {
  return new Date(time).toISOString().slice(0, 10).replaceAll("-", "");
}
