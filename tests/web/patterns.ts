/** Find the regular expressions of the app, and generate hostile texts from the pieces of each. */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createRequire } from "node:module";
import { createServer, parseAst } from "vite";

const SOURCES = resolve(import.meta.dirname, "../../web/src");
const PIECES_MAX = 14;
const FEATURES = { unicodePropertyEscape: true, namedGroups: true, lookbehind: true, unicodeSet: true };

/** A node of the syntax tree of regjsparser, which is installed as a dependency of Babel. */
type Node = {
  type: string;
  body?: Node[];
  codePoint?: number;
  kind?: string;
  value?: string;
  negative?: boolean;
  min?: number | Node;
  max?: number | Node;
  behavior?: string;
};
const { parse } = createRequire(import.meta.url)("regjsparser") as {
  parse: (source: string, flags: string, features: object) => Node;
};

export type Found = { where: string; expression: RegExp };

/**
 * Return the regular expressions of the app: the literals in its sources, and those that modules create with RegExp
 * while they load. Throw an error for a RegExp that is created later, because it would not be recorded.
 */
export async function patterns(): Promise<Found[]> {
  const found = new Map<string, Found>();
  const add = (where: string, expression: RegExp) => found.set(String(expression), { where, expression });
  const building = new Map<string, number>();
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).toSorted()) {
    if (!/\.tsx?$/u.test(file) || file.endsWith(".d.ts")) continue;
    const source = readFileSync(join(SOURCES, file), "utf8");
    const tree = parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" });
    JSON.stringify(tree, (_, node: AstNode | null) => {
      if (node?.regex)
        add(`${file}:${line(source, node.start!)}`, RegExp(node.regex.pattern, node.regex.flags));
      if (node?.callee?.name === "RegExp") building.set(file, (building.get(file) ?? 0) + 1);
      return node instanceof RegExp || typeof node === "bigint" ? undefined : node;
    });
  }
  const instances = await recorded([...building.keys()], add);
  for (const [file, count] of building)
    if (instances.get(file)?.size !== count)
      throw new Error(`${file}: make each RegExp while the module loads`);
  return [...found.values()];
}

const line = (source: string, at: number) => source.slice(0, at).split("\n").length;

interface AstNode {
  regex?: { pattern: string; flags: string };
  callee?: { name?: string };
  start?: number;
}

/** Return, for each file, the places that created a RegExp while the modules were loaded. */
async function recorded(
  files: string[],
  add: (where: string, expression: RegExp) => void,
): Promise<Map<string, Set<string>>> {
  const patternsByFile = new Map(files.map((file) => [file, new Set<string>()]));
  const server = await createServer({
    ...{ configFile: false, root: SOURCES, logLevel: "error", optimizeDeps: { noDiscovery: true } },
    server: { middlewareMode: true, ws: false, watch: null },
  });
  const before = globalThis.RegExp;
  globalThis.RegExp = new Proxy(before, {
    construct(target, given: [string, string?]) {
      const expression = new target(...given);
      const place = new Error().stack!.split("\n")[2]!;
      const file = files.find((file) => place.includes(join(SOURCES, file)));
      if (file) {
        patternsByFile.get(file)!.add(place);
        add(file, expression);
      }
      return expression;
    },
  });
  try {
    for (const file of files) await server.ssrLoadModule(join(SOURCES, file));
  } finally {
    globalThis.RegExp = before;
    await server.close();
  }
  return patternsByFile;
}

/** Find all matches in the text or, with a sticky expression, only the first. */
export function consume({ expression: { source, flags, sticky } }: Found, text: string): void {
  const expression = new RegExp(source, sticky || flags.includes("g") ? flags : `${flags}g`);
  if (sticky) expression.exec(text);
  else for (const _ of text.matchAll(expression));
}

/** Yield texts of about `length` characters that repeat what the pattern matches and end with a mismatch. */
export function* hostile({ expression: { source, flags } }: Found, length: number): Generator<string> {
  const tree = [parse(source, flags.replace(/[^iuvs]/gu, ""), FEATURES)];
  const pieces = [...new Set(samples(tree))].filter(Boolean).slice(0, PIECES_MAX);
  const starts = [...new Set(["", ...leads(tree)])].slice(0, 4);
  const pairs = pieces.slice(0, 4).flatMap((a) => pieces.slice(0, 4).map((b) => a + b));
  const around = [...starts.map((start) => [start, "\0"]), ["x", "x"], ["", "\n\0"]] as [string, string][];
  for (const piece of new Set([...pieces, ...pairs]))
    for (const [start, end] of around) yield start + piece.repeat(Math.ceil(length / piece.length)) + end;
}

/** Return a text that the nodes match, with the `which`-th choice of each class and the fewest repetitions. */
const sample = (nodes: Node[], which = 0): string => nodes.map((node) => one(node, which)).join("");

function one(node: Node, which: number): string {
  const body = node.body ?? [];
  switch (node.type) {
    case "value":
      return String.fromCodePoint(node.codePoint!);
    case "dot":
      return "a";
    case "characterClass":
      return members(node)[which % members(node).length]!;
    case "characterClassEscape":
    case "unicodePropertyEscape":
      return members({ type: "", body: [node] })[0]!;
    case "disjunction":
      return one(body[which % body.length]!, which);
    case "quantifier":
      return sample(body, which).repeat(Math.min(Math.max(node.min as number, 1), 600));
    case "group":
      return node.behavior === "normal" || node.behavior === "ignore" ? sample(body, which) : "";
    case "alternative":
      return sample(body, which);
  }
  return "";
}

const SOME = [..."a 0-A.\n<[\"'é\0中\u0301"];

function members(node: Node): string[] {
  const found = [];
  for (const part of node.body ?? []) {
    if (part.type === "value") found.push(String.fromCodePoint(part.codePoint!));
    else if (part.type === "characterClassRange")
      for (const end of [part.min, part.max]) found.push(String.fromCodePoint((end as Node).codePoint!));
    else if (part.type === "characterClass") found.push(...members(part));
    else found.push(...SOME.filter((letter) => escape(part).test(letter)).slice(0, 2));
  }
  if (!node.negative) return found.length ? found : ["a"];
  const others = SOME.filter((letter) => !(node.body ?? []).some((part) => holds(part, letter))).slice(0, 3);
  return others.length ? others : ["\u4e00"];
}

const escape = ({ type, value, negative }: Node): RegExp =>
  new RegExp(type === "characterClassEscape" ? `\\${value}` : `\\${negative ? "P" : "p"}{${value}}`, "u");

function holds(part: Node, letter: string): boolean {
  const code = letter.codePointAt(0)!;
  if (part.type === "value") return part.codePoint === code;
  if (part.type === "characterClassRange")
    return (part.min as Node).codePoint! <= code && code <= (part.max as Node).codePoint!;
  return part.type === "characterClass" ? members(part).includes(letter) : escape(part).test(letter);
}

/** Yield samples of each repetition, of the beginnings and ends of each sequence, and of the whole. */
function* samples(nodes: Node[]): Generator<string> {
  for (const node of nodes) {
    if (node.type === "quantifier") {
      for (const which of [0, 1]) yield sample(node.body!, which);
      yield* samples(node.body!);
    }
  }
  for (const node of nodes)
    if (["group", "alternative"].includes(node.type)) yield* samples(node.body!);
    else if (node.type === "disjunction") for (const branch of node.body!) yield* samples([branch]);
  for (const which of [0, 1]) {
    yield sample(nodes, which);
    for (let end = 1; end < nodes.length; end++) {
      yield sample(nodes.slice(0, end), which);
      yield sample(nodes.slice(end), which);
    }
  }
}

/** Yield a sample of the nodes before each repetition: a text that starts with it reaches the repetition. */
function* leads(nodes: Node[]): Generator<string> {
  for (const [end, node] of nodes.entries()) {
    const before = sample(nodes.slice(0, end));
    if (node.type === "quantifier") yield before;
    else if (["group", "alternative", "disjunction"].includes(node.type))
      for (const start of leads(node.body!)) yield before + start;
  }
}
