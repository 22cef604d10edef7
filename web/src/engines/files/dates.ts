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

/** As Python spells it, which is what the server stores. */
export function spelledDate(days: number, kind: DateKind, since1904: boolean): string {
  const part = Math.round((days - Math.floor(days)) * DAY_MS);
  let day = Math.floor(days);
  if (kind === "duration")
    return (day ? `${day} day${Math.abs(day) === 1 ? "" : "s"}, ` : "") + clock(part, false);
  if (day === 0 && part < DAY_MS) return clock(part, true);
  if (days > 0 && days < 60 && !since1904) day++; // Excel believes in a 29 February 1900
  const time = (since1904 ? EPOCH_1904 : EPOCH) + day * DAY_MS + part;
  if (!(time < Date.UTC(10_000, 0, 1) && time >= Date.UTC(1, 0, 1))) return "#VALUE!";
  return `${new Date(time).toISOString().slice(0, 10)} ${clock(time - Math.floor(time / DAY_MS) * DAY_MS, true)}`;
}

function clock(ms: number, padded: boolean): string {
  const two = (number: number) => String(number).padStart(2, "0");
  const seconds = Math.floor(ms / 1000);
  const hours = Math.floor(seconds / 3600);
  const fraction = ms % 1000 ? `.${String(ms % 1000).padStart(3, "0")}000` : "";
  return `${padded ? two(hours) : hours}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}${fraction}`;
}
