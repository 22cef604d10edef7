/** Parse XML to a tree, without expanding entities or fetching anything. */

import { decodeXml } from "./characterEntities.ts";
import { Unreadable } from "../result.ts";
import { attributesOf, scan, type Listener } from "./tagScanner.ts";

/**
 * An XML element. The prefix of a name is the one in `PREFIXES` for its namespace, whatever prefix the file uses. Names
 * of other namespaces have no prefix.
 */
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
/** Maximum depth of the tree, because functions on the tree are recursive and could overflow the stack. */
const DEPTH_MAX = 1000;

/**
 * Return the root element. Throw Unreadable if the XML is not well-formed. To save memory, elements named `streamed`
 * are removed from the tree when they end and passed to `onElement`.
 */
export function parseXml(
  data: Uint8Array,
  streamed = "",
  onElement: (node: XmlNode) => void = () => {},
): XmlNode {
  const source = decodeXmlBytes(data);
  if (/<!doctype/iu.test(source.slice(0, 100_000)) && source.slice(0, 100_000).includes("<!ENTITY"))
    throw new Unreadable("TOO_EXPANSIVE");
  const builder = new TreeBuilder(streamed, onElement);
  scan(source, builder);
  return builder.root();
}

function decodeXmlBytes(data: Uint8Array): string {
  return new TextDecoder(encodingOf(data), { fatal: true }).decode(data);
}

function encodingOf(data: Uint8Array): string {
  if (data[0] === 0xff && data[1] === 0xfe) return "utf-16le";
  if (data[0] === 0xfe && data[1] === 0xff) return "utf-16be";
  const head = new TextDecoder("latin1").decode(data.subarray(0, 200));
  return /^[^>]*encoding\s*=\s*["']([\w-]+)/u.exec(head)?.[1] ?? "utf-8";
}

class TreeBuilder implements Listener {
  readonly #document: XmlNode = { name: "", attributes: new Map(), children: [] };
  readonly #open: { node: XmlNode; tagName: string; prefixes: Map<string, string> }[] = [
    { node: this.#document, tagName: "", prefixes: new Map() },
  ];

  constructor(
    private readonly streamed: string,
    private readonly onElement: (node: XmlNode) => void,
  ) {}

  start(tagName: string, tagAttributes: string, closed: boolean): void {
    const parent = this.#open.at(-1)!;
    const prefixes = withDeclarations(tagAttributes, parent.prefixes);
    const attributes = new Map<string, string>();
    for (const [name, value] of attributesOf(tagAttributes)) {
      attributes.set(name.includes(":") ? withUsualPrefix(name, prefixes) : name, decodeXml(value));
    }
    const node = { name: withUsualPrefix(tagName, prefixes), attributes, children: [] };
    parent.node.children.push(node);
    this.#open.push({ node, tagName, prefixes });
    if (closed) this.end(tagName);
    if (this.#open.length > DEPTH_MAX) throw new Unreadable("DAMAGED");
  }

  end(tagName: string): void {
    const ended = this.#open.pop();
    if (ended?.tagName !== tagName || this.#open.length === 0) throw new Unreadable("DAMAGED");
    if (ended.node.name !== this.streamed) return;
    this.#open.at(-1)!.node.children.pop();
    this.onElement(ended.node);
  }

  text(text: string, literal: boolean): void {
    if (literal && text === "<") throw new Unreadable("DAMAGED"); // a "<" that does not start a tag is invalid in XML
    if (this.#open.length > 1) this.#open.at(-1)!.node.children.push(literal ? text : decodeXml(text));
  }

  root(): XmlNode {
    const root = elements(this.#document)[0];
    if (!root || this.#open.length !== 1) throw new Unreadable("DAMAGED");
    return root;
  }
}

/** Map the file's prefixes to those in `PREFIXES`: the prefixes of the parent element and the declarations of a tag. */
function withDeclarations(tagAttributes: string, outer: Map<string, string>): Map<string, string> {
  if (!tagAttributes.includes("xmlns")) return outer;
  const prefixes = new Map(outer);
  for (const [name, uri] of attributesOf(tagAttributes)) {
    if (name !== "xmlns" && !name.startsWith("xmlns:")) continue;
    prefixes.set(name.slice(6), PREFIXES.find(([pattern]) => pattern.test(uri))?.[1] ?? "");
  }
  return prefixes;
}

function withUsualPrefix(name: string, prefixes: Map<string, string>): string {
  const colon = name.indexOf(":");
  const prefix = prefixes.get(name.slice(0, Math.max(colon, 0))) ?? "";
  const local = name.slice(colon + 1);
  return prefix ? `${prefix}:${local}` : local;
}

export function elements(node: XmlNode): XmlNode[] {
  return node.children.filter((child) => typeof child !== "string");
}

/** Return the element that is found by following the first child of each name in `path`, or undefined. */
export function find(node: XmlNode | undefined, ...path: string[]): XmlNode | undefined {
  let current = node;
  for (const name of path) current = current && elements(current).find((child) => child.name === name);
  return current;
}

/** Yield all descendants with this name. */
export function* every(node: XmlNode, name: string): Generator<XmlNode> {
  for (const child of elements(node)) {
    if (child.name === name) yield child;
    yield* every(child, name);
  }
}

/** Yield descendants with one of the names, but not descendants of yielded elements or of elements in `skipped`. */
export function* topmost(
  node: XmlNode,
  names: ReadonlySet<string>,
  skipped: ReadonlySet<string> = new Set(),
): Generator<XmlNode> {
  for (const child of elements(node)) {
    if (names.has(child.name)) yield child;
    else if (!skipped.has(child.name)) yield* topmost(child, names, skipped);
  }
}

/** Return the text of an element without the text of its child elements. */
export function ownText(node: XmlNode | undefined): string {
  return node?.children.filter((child) => typeof child === "string").join("") ?? "";
}
