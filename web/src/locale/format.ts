/** Format dates, sizes and lists in the language of the catalog. */

import { LOCALE, t } from "./t.ts";

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"] as const;
const SPANS = [
  ["year", 365],
  ["month", 30],
  ["week", 7],
  ["day", 1],
] as const;

/** Return a size such as "1.2 MB". A kilobyte has 1024 bytes, as in the limits of accounts. */
export function bytes(n: number): string {
  const step = n < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(n) / 10));
  const unit = UNITS[step]!;
  const value = n / 1024 ** step;
  return new Intl.NumberFormat(LOCALE, {
    style: "unit",
    unit,
    unitDisplay: step === 0 ? "long" : "short", // "long" for bytes, whose short form is "520 byte"
    maximumFractionDigits: value < 10 && step > 0 ? 1 : 0,
  }).format(value);
}

/** Return a share as a percentage with two significant digits, such as "0.4%" for 0.004. */
export function percent(share: number): string {
  return new Intl.NumberFormat(LOCALE, { style: "percent", maximumSignificantDigits: 2 }).format(share);
}

/** Join names to a list such as "a, b and c". */
export function list(names: readonly string[]): string {
  return new Intl.ListFormat(LOCALE, { type: "conjunction" }).format(names);
}

/** Return a date such as "3 May 2026". */
export function date(at: string): string {
  return new Date(at).toLocaleDateString(LOCALE, { day: "numeric", month: "short", year: "numeric" });
}

/** Return a time of day such as "14:02". */
export function time(at: string): string {
  return new Date(at).toLocaleTimeString(LOCALE, { timeStyle: "short" });
}

/** Return a date with its time, such as "20 November 2026 at 14:02". */
export function dateTime(at: string): string {
  return new Date(at).toLocaleString(LOCALE, { dateStyle: "long", timeStyle: "short" });
}

/** Return the month of a time: "March" in the current year, "March 2025" in another year. */
export function month(at: string): string {
  const when = new Date(at);
  const year = when.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" as const };
  return when.toLocaleDateString(LOCALE, { month: "long", ...year });
}

/** Return an age such as "2 minutes ago" or, counted in midnights, "yesterday". Return an invalid date unchanged. */
export function ago(at: string, now = Date.now()): string {
  const minutes = Math.min(0, Math.round((Date.parse(at) - now) / 60_000));
  if (Number.isNaN(minutes)) return at;
  if (minutes === 0) return t("common.justNow");
  if (minutes > -60) return relative(minutes, "minute");
  if (minutes > -60 * 24) return relative(Math.round(minutes / 60), "hour");
  return relative(-daysBetween(Date.parse(at), now), "day");
}

/** Return an age such as "3 weeks ago", in the largest unit of which at least two have passed, or in days. */
export function since(at: string, now: number): string {
  const days = Math.max(0, daysBetween(Date.parse(at), now));
  if (Number.isNaN(days)) return at; // an invalid date, which older versions could store
  const [unit, length] = SPANS.find(([, length]) => days >= 2 * length) ?? (["day", 1] as const);
  return relative(-Math.floor(days / length), unit);
}

function relative(n: number, unit: Intl.RelativeTimeFormatUnit): string {
  return new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" }).format(n, unit);
}

/** Return the number of midnights between two times. The times are in milliseconds since 1970. */
function daysBetween(from: number, to: number): number {
  return Math.round((new Date(to).setHours(0, 0, 0, 0) - new Date(from).setHours(0, 0, 0, 0)) / 86_400_000);
}
