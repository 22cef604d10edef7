import { LOCALE } from "./locale.ts";

/** "1 change", "3 changes". */
export function count(n: number, one: string, many: string): string {
  return `${n.toLocaleString(LOCALE)} ${PLURAL.select(n) === "one" ? one : many}`;
}

const PLURAL = new Intl.PluralRules("en");

/** How many midnights lie between: what was late yesterday was yesterday, however few hours ago that is. */
export function daysBetween(from: number, to: number): number {
  return Math.round((new Date(to).setHours(0, 0, 0, 0) - new Date(from).setHours(0, 0, 0, 0)) / 86_400_000);
}

/** "2 minutes ago"; of a time that is none, what was written. */
export function ago(at: string, now = Date.now()): string {
  const minutes = Math.min(0, Math.round((Date.parse(at) - now) / 60_000));
  if (Number.isNaN(minutes)) return at;
  const format = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });
  if (minutes === 0) return format.format(0, "second");
  if (minutes > -60) return format.format(minutes, "minute");
  if (minutes > -60 * 24) return format.format(Math.round(minutes / 60), "hour");
  return format.format(-daysBetween(Date.parse(at), now), "day");
}

/** "20 November 2026, 14:02" */
export function moment(at: string): string {
  return new Date(at).toLocaleString(LOCALE, { dateStyle: "long", timeStyle: "short" });
}
