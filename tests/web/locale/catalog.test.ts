/** Every text of the user interface is in the catalog, is used, and is written for people. */

import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { parse, TYPE, type MessageFormatElement } from "@formatjs/icu-messageformat-parser";
import { parseSync } from "vite";
import { START } from "../../../web/compileCatalog.ts";
import catalog from "../../../web/src/locale/en.json";
import { t } from "../../../web/src/locale/t.ts";
import { UNSENDABLE } from "../../../web/src/core/sync/unsendable.ts";

const SRC = "web/src";
const TEXTS: Record<string, string> = catalog;

/** Texts that the page may show although they are not in the catalog. */
const EXCEPTIONS = new Map([["Vademecum", "the name of the product"]]);

/** Attributes and properties whose texts are displayed or read out by screen readers. */
const SHOWN = new Set(["label", "title", "placeholder", "message", "description", "alt", "aria-label"]);

const JARGON =
  /\b(?:embed\w*|rows?|tokens?|blocks?|chunks?|queues?|vectors?|index\w*|pool|prompts?|turns?|episodes?|cache\w*|external\w*|sync errors?|borrow\w*|statements?|entit\w*)\b/iu;

interface Node {
  type: string;
  [field: string]: any;
}

function syntaxOf(name: string, source: string): Node {
  const { program, errors } = parseSync(name, source);
  expect(errors).toEqual([]);
  return program as unknown as Node;
}

function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (const child of Object.values(node).flat())
    if (child && typeof child === "object" && typeof child.type === "string") yield* nodesOf(child as Node);
}

const FILES = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => /(?<!\.d)\.tsx?$/u.test(name))
  .map((name) => ({ name, nodes: [...nodesOf(syntaxOf(name, readFileSync(`${SRC}/${name}`, "utf8")))] }));
const CALLS = FILES.flatMap(({ nodes }) => nodes).filter(
  ({ type, callee }) => type === "CallExpression" && callee.name === "t",
);

/** Return the literal texts that an expression may evaluate to. A computed part of a template becomes "…". */
function literals(node: Node | null): string[] {
  switch (node?.type) {
    case "Literal":
      return typeof node.value === "string" ? [node.value] : [];
    case "JSXText":
      return [node.value];
    case "TemplateLiteral":
      return [node.quasis.map(({ value }: Node["value"]) => value.cooked).join("…")];
    case "JSXExpressionContainer":
      return literals(node.expression);
    case "ConditionalExpression":
      return [...literals(node.consequent), ...literals(node.alternate)];
    case "LogicalExpression":
      return [...(node.operator === "&&" ? [] : literals(node.left)), ...literals(node.right)];
    case "BinaryExpression":
      return node.operator === "+" ? [...literals(node.left), ...literals(node.right)] : [];
    default:
      return [];
  }
}

function keyOf({ name, value }: Node): string {
  return name ?? value;
}

/** Return the texts that a file displays and that are no keys of the catalog. */
function uncatalogued(nodes: readonly Node[]): string[] {
  const errors = new Set(
    nodes.filter(({ type }) => type === "ThrowStatement").flatMap((node) => [...nodesOf(node)]),
  );
  const texts = nodes.flatMap((node) => {
    if (node.type === "JSXElement" || node.type === "JSXFragment") return node.children.flatMap(literals);
    if (node.type === "JSXAttribute" && SHOWN.has(keyOf(node.name))) return literals(node.value);
    if (node.type === "Property" && SHOWN.has(keyOf(node.key))) return literals(node.value);
    const isSentence =
      node.type === "Literal" && /^\p{Lu}\S* \S+ /u.test(String(node.value)) && !errors.has(node);
    return isSentence ? [node.value as string] : [];
  });
  const shown = texts.map((text) => text.trim()).filter((text) => /\p{L}{2}/u.test(text));
  return [...new Set(shown)].filter((text) => !(text in TEXTS) && !EXCEPTIONS.has(text));
}

test.each(FILES.filter(({ name }) => name.endsWith(".tsx") || name.startsWith("ui/")))(
  "$name shows no text outside the catalog",
  ({ nodes }) => {
    expect(uncatalogued(nodes)).toEqual([]);
  },
);

test.each([
  ["<Text size='sm'>Not here</Text>", "Not here"],
  ["<Text>{isHere ? t('app.name') : 'Not here'}</Text>", "Not here"],
  ["<Text>{`Not ${count} here`}</Text>", "Not … here"],
  ["<Button aria-label='Send' />", "Send"],
  ["<Button title={isLate && 'Send'} />", "Send"],
  ["notify({ message: 'Sent' })", "Sent"],
  ["const text = 'This is a sentence.'", "This is a sentence."],
])("a text outside the catalog is found: %s", (source, text) => {
  expect(uncatalogued([...nodesOf(syntaxOf("a.tsx", source))])).toEqual([text]);
});

test("every key of the catalog is used", () => {
  const used = FILES.flatMap(({ nodes }) => nodes)
    .filter(({ type }) => type === "Literal" || type === "TemplateLiteral")
    .flatMap(literals);
  const computed = used.filter((text) => text.includes("…")).map((text) => text.split("…"));
  const isUsed = (key: string) =>
    used.includes(key) ||
    computed.some(
      ([start = "", end = ""]) => /^\w+\./u.test(start) && key.startsWith(start) && key.endsWith(end),
    );
  expect(Object.keys(TEXTS).filter((key) => !isUsed(key))).toEqual([]);
});

/** Return the names of the arguments of a message. */
function argumentsOf(elements: readonly MessageFormatElement[]): string[] {
  const names = elements.flatMap((element) => {
    if (element.type === TYPE.literal || element.type === TYPE.pound) return [];
    const options = "options" in element ? Object.values(element.options) : [];
    return [element.value, ...options.flatMap(({ value }) => argumentsOf(value))];
  });
  return [...new Set(names)].toSorted();
}

test("every call of t passes the arguments of its message", () => {
  const given = (node: Node | undefined) =>
    (node?.properties ?? []).map(({ key }: Node) => keyOf(key)).toSorted() as string[];
  const checked = CALLS.flatMap(({ arguments: [key, values] }) =>
    literals(key)
      .filter((key) => key in TEXTS)
      .map((key) => ({ key, given: given(values), wanted: argumentsOf(parse(TEXTS[key]!)) })),
  );
  expect(checked.length).toBeGreaterThan(400);
  expect(checked.filter(({ given, wanted }) => given.join() !== wanted.join())).toEqual([]);
});

/** Return a file and the files that it imports statically, directly or indirectly. */
function loadedWith(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  for (const { type, importKind, source } of FILES.find((file) => file.name === name)?.nodes ?? [])
    if (type === "ImportDeclaration" && importKind !== "type" && source.value.startsWith("."))
      loadedWith(posix.join(posix.dirname(name), source.value), found);
  return found;
}

test("the first load contains every text that its files show", () => {
  const first = loadedWith("main.tsx");
  const nodes = FILES.filter(({ name }) => first.has(name)).flatMap((file) => file.nodes);
  const keys = nodes
    .filter(({ type }) => type === "Literal" || type === "TemplateLiteral")
    .flatMap(literals)
    .filter(
      (text) =>
        text in TEXTS ||
        Object.keys(TEXTS).some(
          (key) => text.endsWith("…") && key.startsWith(text.slice(0, -1)) && text.includes("."),
        ),
    );
  expect(keys.length).toBeGreaterThan(100);
  expect(keys.filter((key) => !START.test(key))).toEqual([]);
});

test("t() ignores values that a text does not use", () => {
  expect(t("sync.line.starting", { n: 2, when: "" })).toBe(TEXTS["sync.line.starting"]);
  expect(t("sync.line.sending", { n: 2, when: "" })).toBe("2 changes waiting");
});

test("texts of the app contain no jargon", () => {
  const texts = [...Object.values(TEXTS), UNSENDABLE].map((text) =>
    text.replace(/\{\w+(?:, \w+(?:, (?=\w+\}))?)?|\b(?:one|other|true|=0) (?=\{)/gu, "…"),
  );
  expect(texts.filter((text) => JARGON.test(text))).toEqual([]);
  expect(JARGON.test("Erased 4 rows")).toBe(true);
});
