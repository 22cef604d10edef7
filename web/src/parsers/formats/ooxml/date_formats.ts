/**
 * Days, times and durations of a workbook are numbers of days; that they are, and what of them is shown, only their format
 * says. The rules are those of server/vademecum/engines/files/formats/ooxml/date_formats.py.
 */

/** What a format makes of a number, which comes as it is and as it is spelled without a format. */
export type Look = (number: number, plain: string) => string;

const DAYS_MAX = 2_958_465; // the end of 9999, and of Excel
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
const WRITTEN = /^(?:(\d{4}-\d\d-\d\d))?T?(?:(\d\d):(\d\d)(?::(\d\d)(\.\d{1,3})?)?)?/u;

/** What of a point in time. `exact`: to the millisecond, where Excel rounds to seconds. */
interface Shown {
  day: boolean;
  time: boolean;
  seconds: boolean;
  exact: boolean;
}

/** Undefined where the pattern, which has no letters that are only shown, is none of a day or time. */
export function dated(pattern: string, since1904: boolean): Look | undefined {
  const [seconds, exact] = [SECONDS.test(pattern), FRACTION.test(pattern)];
  const elapsed = ELAPSED.exec(pattern)?.[1]?.toLowerCase();
  if (elapsed) return duration(elapsed, seconds, exact);
  const time = TIME.test(pattern);
  const day = DAY_OR_YEAR.test(pattern) || (!time && MONTH.test(pattern));
  return day || time ? point({ day, time, seconds, exact: exact || !time }, since1904) : undefined;
}

function duration(largest: string, seconds: boolean, exact: boolean): Look {
  return (days, plain) => {
    if (Math.abs(days) > DAYS_MAX) return plain;
    const length = milliseconds(Math.abs(days), exact);
    return (days < 0 && length ? "-" : "") + clock(length, largest, seconds);
  };
}

function point(shown: Shown, since1904: boolean): Look {
  return (days, plain) => {
    if (Math.abs(days) > DAYS_MAX) return plain;
    const whole = milliseconds(days, shown.exact);
    let day = Math.floor(whole / DAY);
    const time = shown.time ? clock(whole - day * DAY, "hh", shown.seconds) : "";
    if (!shown.day || (day === 0 && !since1904)) return time || plain; // Excel's 0 January is no day
    if (day > 0 && day < 60 && !since1904) day++; // Excel believes in a 29 February 1900
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
 * As "27:05". `largest`: the unit that no larger one takes from, in as many letters as it has digits; `seconds`: they are
 * shown even if there are none.
 */
function clock(length: number, largest: string, seconds: boolean): string {
  const two = (number: number) => String(number % 60).padStart(2, "0");
  const size = SIZES.get(largest[0]!)!;
  const shown = [String(Math.floor(length / size)).padStart(largest.length, "0")];
  if (size > MINUTE) shown.push(two(Math.floor(length / MINUTE)));
  if (size > SECOND && (seconds || length % MINUTE)) shown.push(two(Math.floor(length / SECOND)));
  const fraction = String(length % SECOND).padStart(3, "0");
  return shown.join(":") + (Number(fraction) ? `.${fraction.replace(/(?<!0)0+$/u, "")}` : "");
}

/** What is written as a day, a time or both, as Python spells it; as it is written, if it is none. */
export function spelledTime(value: string): string {
  const [, date, hours, minutes, seconds = "00", fraction = ""] = WRITTEN.exec(value) ?? [];
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
