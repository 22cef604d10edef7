/** Numbers and dates as they are read. */

import { daysBetween } from "./count.ts";
import { LOCALE } from "./locale.ts";

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"] as const;

/** "1.2 MB": in steps of 1024, as the limits are. */
export function bytes(n: number): string {
  const step = n < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(n) / 10));
  const unit = UNITS[step]!;
  const value = n / 1024 ** step;
  const digits = value < 10 && step > 0 ? 1 : 0;
  return new Intl.NumberFormat(LOCALE, {
    style: "unit",
    unit,
    unitDisplay: step === 0 ? "long" : "short", // the short one of 520 is "520 byte"
    maximumFractionDigits: digits,
  }).format(value);
}

/** "3 May 2026". */
export function date(at: string): string {
  return new Date(at).toLocaleDateString(LOCALE, { day: "numeric", month: "short", year: "numeric" });
}

/** "March", or with another year "March 2025". */
export function month(at: string): string {
  const when = new Date(at);
  const year = when.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" as const };
  return when.toLocaleDateString(LOCALE, { month: "long", ...year });
}

const SPANS = [
  ["year", 365],
  ["month", 30],
  ["week", 7],
  ["day", 1],
] as const;

/** "today", "3 weeks ago": in the largest unit of which there are two, or else in days. */
export function since(at: string, now: number): string {
  const days = Math.max(0, daysBetween(Date.parse(at), now));
  if (Number.isNaN(days)) return at; // no calendar has it, but it may have come here before that was asked
  const [unit, length] = SPANS.find(([, length]) => days >= 2 * length) ?? (["day", 1] as const);
  return new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" }).format(-Math.floor(days / length), unit);
}
