/** Dates in a workbook are numbers of days; that they are dates, only their format says. */

import { elements, find, type XmlNode } from "./xml.ts";

export type DateKind = "date" | "duration";

const DAY_MS = 86_400_000;
const EPOCH = Date.UTC(1899, 11, 30);
const EPOCH_1904 = Date.UTC(1904, 0, 1);
/** Formats that every program knows by their numbers. */
const BUILT_IN: Record<string, DateKind> = {
  ...Object.fromEntries([14, 15, 16, 17, 18, 19, 20, 21, 22, 45, 47].map((number) => [number, "date"])),
  46: "duration",
};
const WRITTEN = /^(?:(\d{4}-\d\d-\d\d))?T?(?:(\d\d):(\d\d)(?::(\d\d)(\.\d{1,3})?)?)?/u;
const NO_FORMAT = /".*?"|\[(?!hh?\]|mm?\]|ss?\])[^\]]*\]/giu; // letters that are shown, colours, languages

/** By the number of a cell's style, what its format makes of a number. */
export function dateFormats(styles: XmlNode): (DateKind | undefined)[] {
  const formats = find(styles, "x:numFmts");
  const kinds = new Map<string, DateKind | undefined>(Object.entries(BUILT_IN));
  for (const { attributes } of formats ? elements(formats) : [])
    kinds.set(attributes.get("numFmtId") ?? "", kindOf(attributes.get("formatCode") ?? ""));
  const cells = find(styles, "x:cellXfs");
  return (cells ? elements(cells) : []).map(({ attributes }) => kinds.get(attributes.get("numFmtId") ?? ""));
}

function kindOf(format: string): DateKind | undefined {
  const [positive = ""] = format.split(";");
  const bare = positive.replace(NO_FORMAT, "");
  if (/\[(hh?|mm?|ss?)\]/iu.test(bare)) return "duration";
  return /(?<![_\\])[dmhys]/iu.test(bare) ? "date" : undefined;
}

/** As Python spells it, which is what the server stores; undefined where there is no such day. */
export function spelledDate(days: number, kind: DateKind, since1904: boolean): string | undefined {
  const part = Math.round((days - Math.floor(days)) * DAY_MS);
  let day = Math.floor(days);
  if (kind === "duration" && Math.abs(days) >= 1e9) return undefined;
  if (kind === "duration")
    return (day ? `${day} day${Math.abs(day) === 1 ? "" : "s"}, ` : "") + clock(part, false);
  if (day === 0 && part < DAY_MS) return clock(part, true);
  if (days > 0 && days < 60 && !since1904) day++; // Excel believes in a 29 February 1900
  const time = (since1904 ? EPOCH_1904 : EPOCH) + day * DAY_MS + part;
  if (!(time < Date.UTC(10_000, 0, 1) && time >= Date.UTC(1, 0, 1))) return undefined;
  return `${new Date(time).toISOString().slice(0, 10)} ${clock(time - Math.floor(time / DAY_MS) * DAY_MS, true)}`;
}

/** What is written as a day, a time or both; as it is written, if it is none. */
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

function clock(ms: number, padded: boolean): string {
  const two = (number: number) => String(number).padStart(2, "0");
  const seconds = Math.floor(ms / 1000);
  const hours = Math.floor(seconds / 3600);
  const fraction = ms % 1000 ? `.${String(ms % 1000).padStart(3, "0")}000` : "";
  return `${padded ? two(hours) : hours}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}${fraction}`;
}
