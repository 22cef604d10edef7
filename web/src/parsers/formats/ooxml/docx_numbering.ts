/**
 * The numbers of clauses and lists, which Word makes itself: they stand in no text of the document. A paragraph, or its
 * style, names a `w:num`; that one an `w:abstractNum`, which says how each level is numbered.
 */

import { isOn, value } from "./docx_properties.ts";
import { elements, find, type XmlNode } from "../../markup/xml.ts";

const LEVELS = 9;
const STYLES_MAX = 20; // that are based on each other, maybe in circles
const NUMBER_MAX = 100; // characters: it is written out before each paragraph
const LETTERS_MAX = 780; // the highest number that Word spells as a letter, thirty times
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
 * How the paragraphs of a level are numbered. `template` has %1 for the number of the first level, and so on; `restart` is
 * how many levels make it begin anew.
 */
interface Level {
  start: number;
  spelling: string;
  template: string;
  separator: string;
  isLegal: boolean;
  restart: number | undefined;
  style: string;
}

/** A `w:num`: the levels of its `w:abstractNum`, and what it says otherwise. `starts`: where it begins anew. */
interface List {
  name: string;
  abstract: string;
  levels: ReadonlyMap<number, Level>;
  starts: ReadonlyMap<number, number>;
}

/** What a paragraph or a style says of its number, each empty if nothing. */
interface Named {
  list: string;
  level: string;
  style: string;
  basedOn: string;
}

interface Place {
  list: List;
  level: number;
}

/** The lists of a document, by the roots of its numbering and its styles. */
export class Numbering {
  readonly #styles: ReadonlyMap<string, Named>;
  readonly #abstracts: ReadonlyMap<string, XmlNode>;
  readonly #linked: ReadonlyMap<string, XmlNode>;
  readonly #nums: ReadonlyMap<string, XmlNode>;
  readonly #levels = new Map<XmlNode | undefined, ReadonlyMap<number, Level>>();
  readonly #lists = new Map<string, List | undefined>();
  readonly #places = new Map<string, Place | undefined>();

  constructor(root: XmlNode, styles: XmlNode | undefined) {
    const abstracts = named(root, "w:abstractNum");
    this.#styles = new Map(
      named(styles, "w:style")
        .map(ofStyle)
        .map((style) => [style.style, style]),
    );
    this.#abstracts = new Map(abstracts.map((node) => [attribute(node, "w:abstractNumId"), node]));
    this.#linked = new Map(abstracts.map((node) => [value(node, "w:styleLink"), node]));
    this.#nums = new Map(named(root, "w:num").map((node) => [attribute(node, "w:numId"), node]));
  }

  /** The list of a paragraph, and its level there. */
  place(paragraph: XmlNode): Place | undefined {
    const properties = find(paragraph, "w:pPr");
    const told = { ...numberOf(properties), style: "", basedOn: value(properties, "w:pStyle") };
    const key = JSON.stringify(told);
    if (!this.#places.has(key)) this.#places.set(key, this.#placeOf(told));
    return this.#places.get(key);
  }

  #placeOf(paragraph: Named): Place | undefined {
    const told = [paragraph, ...this.#above(paragraph)];
    const list = this.#list(told.find((one) => one.list)?.list ?? "");
    const said = list && told.flatMap((one) => [levelOf(list, one.style), whole(one.level)]);
    const level = said?.find((level) => level !== undefined) ?? 0;
    return list?.levels.has(level) ? { list, level } : undefined;
  }

  #above({ basedOn }: Named): Named[] {
    const found: Named[] = [];
    let style = this.#styles.get(basedOn);
    while (style && found.length < STYLES_MAX) {
      found.push(style);
      style = this.#styles.get(style.basedOn);
    }
    return found;
  }

  #list(name: string): List | undefined {
    if (!this.#lists.has(name)) {
      const num = name === "0" ? undefined : this.#nums.get(name); // 0: the number of the style is taken away
      this.#lists.set(name, num && this.#listOf(name, num));
    }
    return this.#lists.get(name);
  }

  #listOf(name: string, num: XmlNode): List {
    const abstract = value(num, "w:abstractNumId");
    const levels = new Map(this.#levelsOf(this.#linkedFrom(abstract)));
    const starts = new Map<number, number>();
    for (const [number, override] of byLevel(num, "w:lvlOverride")) {
      const own = find(override, "w:lvl");
      const start = whole(value(override, "w:startOverride"));
      if (own) levels.set(number, level(own));
      if (start !== undefined) starts.set(number, start);
    }
    return { name, abstract, levels, starts };
  }

  #linkedFrom(abstract: string): XmlNode | undefined {
    const found = this.#abstracts.get(abstract);
    const link = value(found, "w:numStyleLink");
    return link ? (this.#linked.get(link) ?? found) : found;
  }

  /** Once, however many lead to it. */
  #levelsOf(abstract: XmlNode | undefined): ReadonlyMap<number, Level> {
    const known = this.#levels.get(abstract);
    if (known) return known;
    const levels = new Map([...byLevel(abstract, "w:lvl")].map(([number, node]) => [number, level(node)]));
    this.#levels.set(abstract, levels);
    return levels;
  }
}

/**
 * The numbers of paragraphs that follow on each other. Lists of one `w:abstractNum` go on counting each other's; boxes of
 * text count for themselves, and so does what has a `Counting` of its own.
 */
export class Counting {
  readonly #counts = new Map<string, Map<number, number>>();
  readonly #begun = new Set<string>();

  constructor(private readonly numbering: Numbering) {}

  /**
   * What stands before the words of the next paragraph, if any. Where it has none (not `isSaid`), a bullet says nothing.
   */
  number(paragraph: XmlNode, isSaid: boolean, isBoxed: boolean): string {
    const place = this.numbering.place(paragraph);
    if (!place) return "";
    const { list, level } = place;
    const story = `${isBoxed} ${list.abstract}`;
    const counts = this.#counts.get(story) ?? new Map<number, number>();
    this.#counts.set(story, counts);
    for (const number of [...list.levels.keys()].filter((number) => number <= level).sort()) {
      if (number < level && counts.has(number)) continue; // one that is left out counts, too
      counts.set(number, this.#next(list, number, counts.get(number), isBoxed));
    }
    for (const deeper of [...counts.keys()])
      if (deeper > level && beginsAnew(list.levels.get(deeper), level)) counts.delete(deeper);
    const number = written(place, counts);
    const { spelling, separator } = list.levels.get(level)!;
    if (!number.replaceAll(" ", "") || (spelling === "bullet" && !isSaid)) return "";
    return isSaid && !number.endsWith(" ") ? number + separator : number;
  }

  #next(list: List, level: number, last: number | undefined, isBoxed: boolean): number {
    const key = `${isBoxed} ${level} ${list.name}`;
    const begins = list.starts.has(level) && !this.#begun.has(key);
    this.#begun.add(key);
    return begins || last === undefined ? first(list, level) : last + 1;
  }
}

function numberOf(properties: XmlNode | undefined): Pick<Named, "list" | "level"> {
  const about = find(properties, "w:numPr");
  return { list: value(about, "w:numId"), level: value(about, "w:ilvl") };
}

function ofStyle(style: XmlNode): Named {
  return {
    ...numberOf(find(style, "w:pPr")),
    style: attribute(style, "w:styleId"),
    basedOn: value(style, "w:basedOn"),
  };
}

function named(node: XmlNode | undefined, name: string): XmlNode[] {
  return node ? elements(node).filter((child) => child.name === name) : [];
}

function attribute(node: XmlNode, name: string): string {
  return node.attributes.get(name) ?? "";
}

function byLevel(node: XmlNode | undefined, name: string): Map<number, XmlNode> {
  const found = new Map<number, XmlNode>();
  for (const about of named(node, name)) {
    const number = whole(attribute(about, "w:ilvl")) ?? LEVELS;
    if (number < LEVELS) found.set(number, about);
  }
  return found;
}

function level(node: XmlNode): Level {
  const spelling = value(node, "w:numFmt");
  const said = bounded(value(node, "w:lvlText"));
  const bullet = said || find(node, "w:lvlPicBulletId") ? "•" : "";
  const template = spelling === "bullet" ? bullet : said.replace(/[ \t\r\n]+/gu, " ");
  return {
    start: whole(value(node, "w:start")) ?? 0,
    spelling,
    template: isOn(find(node, "w:rPr"), "w:vanish") ? "" : template,
    separator: value(node, "w:suff") === "nothing" ? "" : " ",
    isLegal: isOn(node, "w:isLgl") ?? false,
    restart: whole(value(node, "w:lvlRestart")),
    style: value(node, "w:pStyle"),
  };
}

function levelOf({ levels }: List, style: string): number | undefined {
  return [...levels].find(([, level]) => style && level.style === style)?.[0];
}

function first({ starts, levels }: List, level: number): number {
  return starts.get(level) ?? levels.get(level)!.start;
}

function beginsAnew(level: Level | undefined, behind: number): boolean {
  return level?.restart === undefined || behind < level.restart;
}

function written({ list, level }: Place, counts: ReadonlyMap<number, number>): string {
  const { template, isLegal } = list.levels.get(level)!;
  const number = template.replace(/%([1-9])/gu, (_, digit: string) => {
    const number = Number(digit) - 1;
    const about = list.levels.get(number);
    if (number > level || !about) return "";
    const isPlain = isLegal && about.spelling !== "decimalZero";
    return spelled(counts.get(number)!, isPlain ? "decimal" : about.spelling);
  });
  return bounded(number);
}

/** In whole letters, as the server counts them. */
function bounded(text: string): string {
  return [...text].slice(0, NUMBER_MAX).join("");
}

function spelled(number: number, spelling: string): string {
  if (spelling === "none" || spelling === "bullet") return "";
  if (spelling === "decimalZero") return String(number).padStart(2, "0");
  if (spelling === "lowerLetter" && number > 0 && number <= LETTERS_MAX) return lettersOf(number);
  if (spelling === "upperLetter") return spelled(number, "lowerLetter").toUpperCase();
  if (spelling === "lowerRoman" && number > 0 && number < 4000) return roman(number);
  if (spelling === "upperRoman") return spelled(number, "lowerRoman").toUpperCase();
  return String(number);
}

/** z is followed by aa, bb and so on. */
function lettersOf(number: number): string {
  const letter = String.fromCharCode("a".charCodeAt(0) + ((number - 1) % 26));
  return letter.repeat(Math.ceil(number / 26));
}

function roman(number: number): string {
  let [rest, found] = [number, ""];
  for (const [worth, letters] of ROMAN) {
    found += letters.repeat(Math.floor(rest / worth));
    rest %= worth;
  }
  return found;
}

function whole(written: string): number | undefined {
  return /^[0-9]{1,10}$/u.test(written) ? Number(written) : undefined;
}
