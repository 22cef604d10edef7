/**
 * Format dates, times and durations of a workbook. A workbook stores them as numbers of days, so only the number format
 * of a cell identifies them. The rules are those of server/vademecum/engines/files/formats/ooxml/date_formats.py.
 */

/** Function that formats a number. `plain` is the text of the number without a format. */
export type Formatter = (number: number, plain: string) => string;

/** Highest number of days that is a date in Excel: the last day of the year 9999. */
const DAYS_MAX = 2_958_465;
const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000] as const;
const SIZES = new Map([
  ["h", HOUR],
  ["m", MINUTE],
  ["s", SECOND],
]);
const EPOCH = Date.UTC(1899, 11, 30);
const EPOCH_1904 = Date.UTC(1904, 0, 1);
const [FIRST, LAST] = [Date.parse("0001-01-01"), Date.parse("9999-12-31")] as const;
const ELAPSED = /\[([hH]{1,2}|[mM]{1,2}|[sS]{1,2})\]/u;
const [TIME, SECONDS, FRACTION] = [/[hHsS]/u, /[sS]/u, /[sS]\]?[.,]0/u] as const;
const [DAY_OR_YEAR, MONTH] = [/[dDyY]|[mM]{3}/u, /[mM]/u] as const;
const ISO_DATE_TIME = /^(?:(\d{4}-\d\d-\d\d))?T?(?:(\d\d):(\d\d)(?::(\d\d)(\.\d{1,3})?)?)?/u;

/** The parts of a point in time that a format displays. Without `exact`, times are rounded to seconds, as in Excel. */
interface DisplayedParts {
  day: boolean;
  time: boolean;
  seconds: boolean;
  exact: boolean;
}

/**
 * Return the formatter for a number format, or undefined if it is not a format for dates, times or durations. `pattern`
 * is the format without its literal text.
 */
export function dateFormatter(pattern: string, since1904: boolean): Formatter | undefined {
  const [seconds, exact] = [SECONDS.test(pattern), FRACTION.test(pattern)];
  const elapsed = ELAPSED.exec(pattern)?.[1]?.toLowerCase();
  if (elapsed) return durationFormatter(elapsed, seconds, exact);
  const time = TIME.test(pattern);
  const day = DAY_OR_YEAR.test(pattern) || (!time && MONTH.test(pattern));
  if (!day && !time) return undefined;
  return dateTimeFormatter({ day, time, seconds, exact: exact || !time }, since1904);
}

function durationFormatter(largest: string, seconds: boolean, exact: boolean): Formatter {
  return (days, plain) => {
    if (Math.abs(days) > DAYS_MAX) return plain;
    const length = milliseconds(Math.abs(days), exact);
    return (days < 0 && length ? "-" : "") + clock(length, largest, seconds);
  };
}

function dateTimeFormatter(parts: DisplayedParts, since1904: boolean): Formatter {
  return (days, plain) => {
    if (Math.abs(days) > DAYS_MAX) return plain;
    const whole = milliseconds(days, parts.exact);
    let day = Math.floor(whole / DAY);
    const time = parts.time ? clock(whole - day * DAY, "hh", parts.seconds) : "";
    if (!parts.day || (day === 0 && !since1904)) return time || plain; // Excel's "0 January 1900" is no date
    if (day > 0 && day < 60 && !since1904) day++; // Excel counts 29 February 1900, which did not exist
    const start = (since1904 ? EPOCH_1904 : EPOCH) + day * DAY;
    if (start < FIRST || start > LAST) return plain;
    return `${new Date(start).toISOString().slice(0, 10)} ${time}`.trimEnd();
  };
}

function milliseconds(days: number, exact: boolean): number {
  const length = Math.floor(days * DAY + 0.5);
  return exact ? length : Math.floor((length + SECOND / 2) / SECOND) * SECOND;
}

/**
 * Return a duration such as "27:05". `largest` is the largest unit, such as "h" or, for at least two digits, "hh". If
 * `seconds` is true, show the seconds even if they are zero.
 */
function clock(length: number, largest: string, seconds: boolean): string {
  const twoDigits = (number: number) => String(number % 60).padStart(2, "0");
  const size = SIZES.get(largest[0]!)!;
  const parts = [String(Math.floor(length / size)).padStart(largest.length, "0")];
  if (size > MINUTE) parts.push(twoDigits(Math.floor(length / MINUTE)));
  if (size > SECOND && (seconds || length % MINUTE)) parts.push(twoDigits(Math.floor(length / SECOND)));
  const fraction = String(length % SECOND).padStart(3, "0");
  return parts.join(":") + (Number(fraction) ? `.${fraction.replace(/(?<!0)0+$/u, "")}` : "");
}

/** Format an ISO date, time or both like Python does. Return an invalid value unchanged. */
export function formatIsoDateTime(value: string): string {
  const [, date, hours, minutes, seconds = "00", fraction = ""] = ISO_DATE_TIME.exec(value) ?? [];
  const isDay = !date || (date > "0001" && isoDay(date) === date);
  if (
    (!date && !hours) ||
    !isDay ||
    Number(hours ?? 0) > 23 ||
    Number(minutes ?? 0) > 59 ||
    Number(seconds) > 59
  )
    return value;
  const time = hours && `${hours}:${minutes}:${seconds}${Number(fraction) ? fraction.padEnd(7, "0") : ""}`;
  return [date, time].filter(Boolean).join(" ");
}

function isoDay(date: string): string {
  const time = Date.parse(date);
  return Number.isNaN(time) ? "" : new Date(time).toISOString().slice(0, 10);
}
