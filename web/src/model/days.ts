/**
 * Days: on which one a row was said, and which ones a question names, in marks that find the one by the other; as on the
 * server (model/days.py), where it says why.
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

/** The marks of the day of a row's time: the day and the month with and without the year, and the year. */
export function ofMoment(moment: string): string {
  const [year, month, day] = [moment.slice(0, 4), moment.slice(5, 7), moment.slice(8, 10)];
  return `day${year}${month}${day} day${month}${day} month${year}${month} month${month} year${year}`;
}

/**
 * The marks of the days that a question names: of each as narrow as it is named and, of a day, its month, so that what was
 * said about then fits better than the rest. Empty if it names none.
 */
export function asked(question: string): string {
  const marks = new Set<string>(); // each once, in order
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
