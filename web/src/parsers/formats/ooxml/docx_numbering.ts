/**
 * Compute the numbers of clauses and lists, which Word generates and does not store as text. A paragraph or its style
 * refers to a `w:num` element. The `w:num` refers to a `w:abstractNum`, which defines the format of each level.
 */

import { isOn, value } from "./docx_properties.ts";
import { elements, find, type XmlNode } from "../../markup/xml.ts";

const LEVELS = 9;
/** Maximum number of styles in a chain, because styles may be based on each other in a cycle. */
const STYLE_DEPTH_MAX = 20;
/** Length in characters to which a number is truncated. */
const NUMBER_MAX = 100;
/** Highest number that Word writes as letters: the letter z repeated 30 times. */
const LETTERS_MAX = 780;
const ROMAN: [number, string][] = [
  [1000, "m"],
  [900, "cm"],
  [500, "d"],
  [400, "cd"],
  [100, "c"],
  [90, "xc"],
  [50, "l"],
  [40, "xl"],
  [10, "x"],
  [9, "ix"],
  [5, "v"],
  [4, "iv"],
  [1, "i"],
];

/**
 * The number format of a level. In `template`, %1 stands for the number of the first level, and so on. A paragraph in
 * one of the first `restart` levels restarts this level. If `restart` is undefined, one in any outer level does.
 */
interface Level {
  start: number;
  format: string;
  template: string;
  separator: string;
  isLegal: boolean;
  restart: number | undefined;
  style: string;
}

/** A `w:num`: the levels of its `w:abstractNum` with its overrides. `starts` maps levels to their own start numbers. */
interface List {
  name: string;
  abstract: string;
  levels: ReadonlyMap<number, Level>;
  starts: ReadonlyMap<number, number>;
}

/** The numbering properties of a paragraph or style. A missing property is "". */
interface NumberingProperties {
  list: string;
  level: string;
  style: string;
  basedOn: string;
}

interface ListLevel {
  list: List;
  level: number;
}

/** The lists of a document, and how its paragraphs and styles refer to them. */
export class Numbering {
  readonly #styles: ReadonlyMap<string, NumberingProperties>;
  readonly #abstracts: ReadonlyMap<string, XmlNode>;
  readonly #linked: ReadonlyMap<string, XmlNode>;
  readonly #nums: ReadonlyMap<string, XmlNode>;
  readonly #levels = new Map<XmlNode | undefined, ReadonlyMap<number, Level>>();
  readonly #lists = new Map<string, List | undefined>();
  readonly #listLevels = new Map<string, ListLevel | undefined>();

  /** Read the lists. `root` and `styles` are the root elements of the document's numbering and styles. */
  constructor(root: XmlNode, styles: XmlNode | undefined) {
    const abstracts = children(root, "w:abstractNum");
    this.#styles = new Map(
      children(styles, "w:style")
        .map(styleProperties)
        .map((style) => [style.style, style]),
    );
    this.#abstracts = new Map(abstracts.map((node) => [attribute(node, "w:abstractNumId"), node]));
    this.#linked = new Map(abstracts.map((node) => [value(node, "w:styleLink"), node]));
    this.#nums = new Map(children(root, "w:num").map((node) => [attribute(node, "w:numId"), node]));
  }

  /** Return the list that a paragraph belongs to and its level in the list, or undefined. */
  listLevelOf(paragraph: XmlNode): ListLevel | undefined {
    const node = find(paragraph, "w:pPr");
    const properties = { ...listReference(node), style: "", basedOn: value(node, "w:pStyle") };
    const key = JSON.stringify(properties);
    if (!this.#listLevels.has(key)) this.#listLevels.set(key, this.#findListLevel(properties));
    return this.#listLevels.get(key);
  }

  #findListLevel(paragraph: NumberingProperties): ListLevel | undefined {
    const inherited = [paragraph, ...this.#stylesOf(paragraph)];
    const list = this.#list(inherited.find(({ list }) => list)?.list ?? "");
    const levels =
      list && inherited.flatMap(({ style, level }) => [levelOfStyle(list, style), toInteger(level)]);
    const level = levels?.find((level) => level !== undefined) ?? 0;
    return list?.levels.has(level) ? { list, level } : undefined;
  }

  #stylesOf({ basedOn }: NumberingProperties): NumberingProperties[] {
    const styles: NumberingProperties[] = [];
    let style = this.#styles.get(basedOn);
    while (style && styles.length < STYLE_DEPTH_MAX) {
      styles.push(style);
      style = this.#styles.get(style.basedOn);
    }
    return styles;
  }

  #list(name: string): List | undefined {
    if (!this.#lists.has(name)) {
      // A paragraph refers to "0" to have no number although its style has one.
      const num = name === "0" ? undefined : this.#nums.get(name);
      this.#lists.set(name, num && this.#parseList(name, num));
    }
    return this.#lists.get(name);
  }

  #parseList(name: string, num: XmlNode): List {
    const abstract = value(num, "w:abstractNumId");
    const levels = new Map(this.#levelsOf(this.#resolveLink(abstract)));
    const starts = new Map<number, number>();
    for (const [number, override] of byLevel(num, "w:lvlOverride")) {
      const own = find(override, "w:lvl");
      const start = toInteger(value(override, "w:startOverride"));
      if (own) levels.set(number, parseLevel(own));
      if (start !== undefined) starts.set(number, start);
    }
    return { name, abstract, levels, starts };
  }

  #resolveLink(abstract: string): XmlNode | undefined {
    const node = this.#abstracts.get(abstract);
    const link = value(node, "w:numStyleLink");
    return link ? (this.#linked.get(link) ?? node) : node;
  }

  /** Return the levels of a `w:abstractNum`, from a cache after the first call. */
  #levelsOf(abstract: XmlNode | undefined): ReadonlyMap<number, Level> {
    const cached = this.#levels.get(abstract);
    if (cached) return cached;
    const levels = new Map(
      [...byLevel(abstract, "w:lvl")].map(([number, node]) => [number, parseLevel(node)]),
    );
    this.#levels.set(abstract, levels);
    return levels;
  }
}

/**
 * Counts the numbered paragraphs of a story, such as the body or all footnotes. Lists with the same `w:abstractNum`
 * share their counters. Paragraphs in text boxes have separate counters.
 */
export class NumberCounter {
  readonly #counts = new Map<string, Map<number, number>>();
  readonly #started = new Set<string>();

  constructor(private readonly numbering: Numbering) {}

  /** Return the number before the next paragraph, with its separator, or "". A paragraph without text has no bullet. */
  number(paragraph: XmlNode, hasText: boolean, isInBox: boolean): string {
    const listLevel = this.numbering.listLevelOf(paragraph);
    if (!listLevel) return "";
    const { list, level } = listLevel;
    const key = `${isInBox} ${list.abstract}`;
    const counts = this.#counts.get(key) ?? new Map<number, number>();
    this.#counts.set(key, counts);
    for (const number of [...list.levels.keys()].filter((number) => number <= level).sort()) {
      if (number < level && counts.has(number)) continue; // an outer level without a number gets its first one
      counts.set(number, this.#next(list, number, counts.get(number), isInBox));
    }
    for (const deeper of [...counts.keys()])
      if (deeper > level && restartsAfter(list.levels.get(deeper), level)) counts.delete(deeper);
    const number = fillTemplate(listLevel, counts);
    const { format, separator } = list.levels.get(level)!;
    if (!number.replaceAll(" ", "") || (format === "bullet" && !hasText)) return "";
    return hasText && !number.endsWith(" ") ? number + separator : number;
  }

  #next(list: List, level: number, previous: number | undefined, isInBox: boolean): number {
    const key = `${isInBox} ${level} ${list.name}`;
    const restarts = list.starts.has(level) && !this.#started.has(key);
    this.#started.add(key);
    return restarts || previous === undefined ? firstNumber(list, level) : previous + 1;
  }
}

function listReference(properties: XmlNode | undefined): Pick<NumberingProperties, "list" | "level"> {
  const node = find(properties, "w:numPr");
  return { list: value(node, "w:numId"), level: value(node, "w:ilvl") };
}

function styleProperties(style: XmlNode): NumberingProperties {
  return {
    ...listReference(find(style, "w:pPr")),
    style: attribute(style, "w:styleId"),
    basedOn: value(style, "w:basedOn"),
  };
}

function children(node: XmlNode | undefined, name: string): XmlNode[] {
  return node ? elements(node).filter((child) => child.name === name) : [];
}

function attribute(node: XmlNode, name: string): string {
  return node.attributes.get(name) ?? "";
}

function byLevel(node: XmlNode | undefined, name: string): Map<number, XmlNode> {
  const levels = new Map<number, XmlNode>();
  for (const child of children(node, name)) {
    const number = toInteger(attribute(child, "w:ilvl")) ?? LEVELS;
    if (number < LEVELS) levels.set(number, child);
  }
  return levels;
}

function parseLevel(node: XmlNode): Level {
  const format = value(node, "w:numFmt");
  const text = truncated(value(node, "w:lvlText"));
  const bullet = text || find(node, "w:lvlPicBulletId") ? "•" : "";
  const template = format === "bullet" ? bullet : text.replace(/[ \t\r\n]+/gu, " ");
  return {
    start: toInteger(value(node, "w:start")) ?? 0,
    format,
    template: isOn(find(node, "w:rPr"), "w:vanish") ? "" : template,
    separator: value(node, "w:suff") === "nothing" ? "" : " ",
    isLegal: isOn(node, "w:isLgl") ?? false,
    restart: toInteger(value(node, "w:lvlRestart")),
    style: value(node, "w:pStyle"),
  };
}

function levelOfStyle({ levels }: List, style: string): number | undefined {
  return [...levels].find(([, level]) => style && level.style === style)?.[0];
}

function firstNumber({ starts, levels }: List, level: number): number {
  return starts.get(level) ?? levels.get(level)!.start;
}

function restartsAfter(level: Level | undefined, outerLevel: number): boolean {
  return level?.restart === undefined || outerLevel < level.restart;
}

function fillTemplate({ list, level }: ListLevel, counts: ReadonlyMap<number, number>): string {
  const { template, isLegal } = list.levels.get(level)!;
  const number = template.replace(/%([1-9])/gu, (_, digit: string) => {
    const number = Number(digit) - 1;
    const numberLevel = list.levels.get(number);
    if (number > level || !numberLevel) return "";
    const isDecimal = isLegal && numberLevel.format !== "decimalZero";
    return formatNumber(counts.get(number)!, isDecimal ? "decimal" : numberLevel.format);
  });
  return truncated(number);
}

/** Truncate a text by code points and not by UTF-16 code units, as the server does. */
function truncated(text: string): string {
  return [...text].slice(0, NUMBER_MAX).join("");
}

function formatNumber(number: number, format: string): string {
  if (format === "none" || format === "bullet") return "";
  if (format === "decimalZero") return String(number).padStart(2, "0");
  if (format === "lowerLetter" && number > 0 && number <= LETTERS_MAX) return toLetters(number);
  if (format === "upperLetter") return formatNumber(number, "lowerLetter").toUpperCase();
  if (format === "lowerRoman" && number > 0 && number < 4000) return toRoman(number);
  if (format === "upperRoman") return formatNumber(number, "lowerRoman").toUpperCase();
  return String(number);
}

/** Return the letters for a number from 1: a, b, …, z, aa, bb, …, zz, aaa, … */
function toLetters(number: number): string {
  const letter = String.fromCharCode("a".charCodeAt(0) + ((number - 1) % 26));
  return letter.repeat(Math.ceil(number / 26));
}

function toRoman(number: number): string {
  let [rest, numeral] = [number, ""];
  for (const [worth, letters] of ROMAN) {
    numeral += letters.repeat(Math.floor(rest / worth));
    rest %= worth;
  }
  return numeral;
}

function toInteger(text: string): number | undefined {
  return /^[0-9]{1,10}$/u.test(text) ? Number(text) : undefined;
}
