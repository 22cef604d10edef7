/** XML as a tree. Entities are not expanded and nothing is fetched. */

import { decodeXml } from "./characterEntities.ts";
import { Unreadable } from "../result.ts";
import { attributesOf, scan, type Listener } from "./tagScanner.ts";

/** Names have the prefix that is usual for their namespace, whichever the file has, or none if it is not known here. */
export interface XmlNode {
  name: string;
  attributes: Map<string, string>;
  children: (XmlNode | string)[];
}

const PREFIXES: [RegExp, string][] = [
  [/\/wordprocessingml(\/2006)?\/main$/u, "w"],
  [/\/officeDocument(\/2006)?\/math$/u, "m"],
  [/\/drawingml(\/2006)?\/main$/u, "a"],
  [/\/drawingml(\/2006)?\/chart$/u, "c"],
  [/\/presentationml(\/2006)?\/main$/u, "p"],
  [/\/spreadsheetml(\/2006)?\/main$/u, "x"],
  [/\/officeDocument(\/2006)?\/relationships$/u, "r"],
  [/\/markup-compatibility\/2006$/u, "mc"],
  [/^urn:oasis:names:tc:opendocument:xmlns:text:1\.0$/u, "text"],
  [/^urn:oasis:names:tc:opendocument:xmlns:table:1\.0$/u, "table"],
  [/^urn:oasis:names:tc:opendocument:xmlns:office:1\.0$/u, "office"],
  [/^urn:oasis:names:tc:opendocument:xmlns:style:1\.0$/u, "style"],
  [/^urn:oasis:names:tc:opendocument:xmlns:drawing:1\.0$/u, "draw"],
  [/^urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1\.0$/u, "svg"],
];
const DEPTH = 1000; // what walks the tree calls itself

/**
 * The root. Throws Unreadable for what is not well-formed. Elements named `each`, of which there may be very many, are
 * given to `take` as they end, and are then no part of the tree.
 */
export function parseXml(data: Uint8Array, each = "", take: (node: XmlNode) => void = () => {}): XmlNode {
  const source = decoded(data);
  if (/<!doctype/iu.test(source.slice(0, 100_000)) && source.slice(0, 100_000).includes("<!ENTITY"))
    throw new Unreadable("TOO_EXPANSIVE");
  const tree = new Tree(each, take);
  scan(source, tree);
  return tree.root();
}

function decoded(data: Uint8Array): string {
  const head = new TextDecoder("latin1").decode(data.subarray(0, 200));
  const utf16 = (data[0] === 0xff && data[1] === 0xfe) || (data[0] === 0xfe && data[1] === 0xff);
  const said = utf16
    ? data[0] === 0xff
      ? "utf-16le"
      : "utf-16be"
    : (/^[^>]*encoding\s*=\s*["']([\w-]+)/u.exec(head)?.[1] ?? "utf-8");
  return new TextDecoder(said, { fatal: true }).decode(data);
}

class Tree implements Listener {
  readonly #top: XmlNode = { name: "", attributes: new Map(), children: [] };
  readonly #open: { node: XmlNode; written: string; names: Map<string, string> }[] = [
    { node: this.#top, written: "", names: new Map() },
  ];

  constructor(
    private readonly each: string,
    private readonly take: (node: XmlNode) => void,
  ) {}

  start(written: string, given: string, closed: boolean): void {
    const around = this.#open.at(-1)!;
    const names = declared(given, around.names);
    const attributes = new Map<string, string>();
    for (const [name, value] of attributesOf(given)) {
      const own = name.includes(":") ? usual(name, names) : name;
      attributes.set(own, decodeXml(value));
    }
    const node = { name: usual(written, names), attributes, children: [] };
    around.node.children.push(node);
    this.#open.push({ node, written, names });
    if (closed) this.end(written);
    if (this.#open.length > DEPTH) throw new Unreadable("DAMAGED");
  }

  end(written: string): void {
    const ended = this.#open.pop();
    if (ended?.written !== written || this.#open.length === 0) throw new Unreadable("DAMAGED");
    if (ended.node.name !== this.each) return;
    this.#open.at(-1)!.node.children.pop();
    this.take(ended.node);
  }

  text(text: string, literal: boolean): void {
    if (literal && text === "<") throw new Unreadable("DAMAGED"); // no tag begins there
    if (this.#open.length > 1) this.#open.at(-1)!.node.children.push(literal ? text : decodeXml(text));
  }

  root(): XmlNode {
    const root = elements(this.#top)[0];
    if (!root || this.#open.length !== 1) throw new Unreadable("DAMAGED");
    return root;
  }
}

/** Prefixes of the file and the usual ones, where this tag declares some. */
function declared(given: string, around: Map<string, string>): Map<string, string> {
  if (!given.includes("xmlns")) return around;
  const names = new Map(around);
  for (const [name, uri] of attributesOf(given)) {
    if (name !== "xmlns" && !name.startsWith("xmlns:")) continue;
    names.set(name.slice(6), PREFIXES.find(([pattern]) => pattern.test(uri))?.[1] ?? "");
  }
  return names;
}

function usual(written: string, names: Map<string, string>): string {
  const colon = written.indexOf(":");
  const prefix = names.get(written.slice(0, Math.max(colon, 0))) ?? "";
  const local = written.slice(colon + 1);
  return prefix ? `${prefix}:${local}` : local;
}

export function elements(node: XmlNode): XmlNode[] {
  return node.children.filter((child) => typeof child !== "string");
}

/** The first child of each name in turn. */
export function find(node: XmlNode | undefined, ...path: string[]): XmlNode | undefined {
  let found = node;
  for (const name of path) found = found && elements(found).find((child) => child.name === name);
  return found;
}

/** All elements of a name, however deep. */
export function* every(node: XmlNode, name: string): Generator<XmlNode> {
  for (const child of elements(node)) {
    if (child.name === name) yield child;
    yield* every(child, name);
  }
}

/** Elements of these names, in order: none of one that lies within another, none of what is gone. */
export function* topmost(
  node: XmlNode,
  wanted: ReadonlySet<string>,
  gone: ReadonlySet<string> = new Set(),
): Generator<XmlNode> {
  for (const child of elements(node)) {
    if (wanted.has(child.name)) yield child;
    else if (!gone.has(child.name)) yield* topmost(child, wanted, gone);
  }
}

/** The letters that stand in an element itself. */
export function letters(node: XmlNode | undefined): string {
  return node?.children.filter((child) => typeof child === "string").join("") ?? "";
}
