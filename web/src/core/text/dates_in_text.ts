/**
 * Days: on which one a row was said, and which ones a question names, in marks that find the one by the other; as on the
 * server (model/text/dates_in_text.py), where it says why.
 */

const GAP = "[ \\t\\r\\n\u00a0]"; // what is a blank differs from language to language
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const NAME =
  "(?<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|" +
  "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\b\\.?";
const DAY = "(?<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?";
const MONTH = "(?<month>0?[1-9]|1[0-2])";
const YEAR = "(?<year>(?:19|20)[0-9]{2})";
// What one of them has read is not read again by those after it. `May` and `March` alone may be no months.
const FORMS = [
  `${YEAR}-${MONTH}-${DAY}`,
  `${DAY}\\.${GAP}?${MONTH}\\.${GAP}?${YEAR}`,
  `${DAY}\\.?${GAP}+(?:of${GAP}+)?${NAME}(?:,?${GAP}+${YEAR})?`,
  `${NAME}${GAP}+${DAY}(?:,?${GAP}+${YEAR})?`,
  `${NAME},?${GAP}+(?:of${GAP}+)?${YEAR}`,
  `(?:in|of|last|since|during|until|before|after)${GAP}+${NAME}`,
  YEAR,
].map((form) => new RegExp(`(?<![\\w.,-])(?:${form})(?![\\w-])`, "gi"));

const FROM_NOW = new RegExp(
  `(?<![\\w-])(?:(?<near>today|yesterday)|(?<which>this|last)${GAP}+(?<span>week|month|year))(?![\\w-])`,
  "gi",
);
const DAY_MS = 86_400_000;

/** The marks of the day of a row's time: the day and the month with and without the year, and the year. */
export function ofMoment(moment: string): string {
  const [year, month, day] = [moment.slice(0, 4), moment.slice(5, 7), moment.slice(8, 10)];
  return `day${year}${month}${day} day${month}${day} month${year}${month} month${month} year${year}`;
}

/**
 * The marks of the days that a question names: of each as narrow as it is named and, of a date, its month, so that what
 * was said about then fits better than the rest. Empty if it names none. `now`: a time as rows have it.
 */
export function asked(question: string, now: string): string {
  const marks = new Set<string>(); // each once, in order
  for (const { groups } of question.matchAll(FROM_NOW))
    for (const mark of fromNow(groups ?? {}, Date.parse(now.slice(0, 10)))) marks.add(mark);
  FORMS.reduce((rest, form) => {
    for (const { groups } of rest.matchAll(form)) for (const mark of named(groups ?? {})) marks.add(mark);
    return rest.replace(form, " ");
  }, question);
  return [...marks].join(" ");
}

function named({ year = "", name, month: number, day }: Record<string, string | undefined>): string[] {
  const month = number ?? (name ? String(MONTHS.indexOf(name.slice(0, 3).toLowerCase()) + 1) : "");
  if (!month) return [`year${year}`];
  const whole = year + month.padStart(2, "0");
  return day ? [`day${whole}${day.padStart(2, "0")}`, `month${whole}`] : [`month${whole}`];
}

/** `today`: its first millisecond. A week begins with its Monday, and this one has come as far as today. */
function fromNow({ near, which, span }: Record<string, string | undefined>, today: number): string[] {
  const isLast = which?.toLowerCase() === "last";
  const sinceMonday = (new Date(today).getUTCDay() + 6) % 7;
  const day = (ago: number) => `day${digits(today - ago * DAY_MS)}`;
  if (near) return [day(near.toLowerCase() === "yesterday" ? 1 : 0)];
  switch (span?.toLowerCase()) {
    case "week": {
      const [first, count] = isLast ? [sinceMonday + 7, 7] : [sinceMonday, sinceMonday + 1];
      return Array.from({ length: count }, (_, at) => day(first - at));
    }
    case "month": {
      const first = today - (new Date(today).getUTCDate() - 1) * DAY_MS;
      return [`month${digits(first - (isLast ? DAY_MS : 0)).slice(0, 6)}`];
    }
    default:
      return [`year${new Date(today).getUTCFullYear() - (isLast ? 1 : 0)}`];
  }
}

/** `20261124` */
function digits(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10).replaceAll("-", "");
}
