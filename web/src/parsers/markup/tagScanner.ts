/** Find the tags of HTML or XML. The listener interprets the tags and checks whether start and end tags match. */

export interface Listener {
  start(name: string, attributes: string, closed: boolean): void;
  end(name: string): void;
  /** `literal`: the text contains no character references. */
  text(text: string, literal: boolean): void;
}

const TAG = /<(\/?)([a-z_][^\s/>]*)/iuy;
const BLANK = /\s/u;
const DOCTYPE = /<!doctype[^>[]*(?:\[[^\]]*\]\s*)?>/iuy;
const RAW_END = /<\/([a-z]+)(?![\w-])/giu;
const ATTRIBUTE = /([^\s=/"'<>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/gu;

/** Call the listener for each tag and text. `raw` has the names of elements whose content is text, even "<". */
export function scan(source: string, listener: Listener, raw: ReadonlySet<string> = new Set()): void {
  const last = source.lastIndexOf(">"); // a "<" after it is text, because no tag can end there
  let position = 0;
  let mayBeDoctype = true; // until the first declaration, so that the search for a document type runs only once
  let hasValidTags = true; // false once a tag has no end: then each tag ends at the next ">"
  while (position < source.length) {
    const open = source.indexOf("<", position);
    if (open < 0 || open > last) break;
    if (open > position) listener.text(source.slice(position, open), false);
    const afterMarkup = skipNonTag(source, open, listener, mayBeDoctype);
    mayBeDoctype &&= !source.startsWith("<!", open) || source.startsWith("<!--", open);
    if (afterMarkup > open) {
      position = afterMarkup;
      continue;
    }
    const match = matchAt(TAG, source, open);
    if (!match) {
      listener.text("<", true);
      position = open + 1;
      continue;
    }
    const [start, slash, name] = match as unknown as [string, string, string];
    let end: number = hasValidTags ? endOfTag(source, open + start.length) : -1;
    hasValidTags &&= end >= 0;
    if (!hasValidTags) end = source.indexOf(">", open);
    const attributes = source.slice(open + start.length, end);
    position = end + 1;
    if (slash) {
      listener.end(name);
      continue;
    }
    const closed = attributes.endsWith("/");
    listener.start(name, attributes, closed);
    if (!closed && raw.has(name.toLowerCase())) position = skipRaw(source, position, name, listener);
  }
  if (position < source.length) listener.text(source.slice(position), false);
}

/**
 * Return the index of the first ">" outside attribute values, or -1. A quotation mark starts a value only if it follows
 * "=" and there is a closing one. Elsewhere it is an ordinary character.
 */
function endOfTag(source: string, from: number): number {
  for (let index = from; index < source.length; index++) {
    if (source[index] === ">") return index;
    if (source[index] !== "=") continue;
    while (BLANK.test(source[index + 1] ?? "")) index++;
    const quote = source[index + 1];
    if (quote === '"' || quote === "'") index = Math.max(index + 1, source.indexOf(quote, index + 2));
    else while (index + 1 < source.length && quote !== ">" && !/[\s>]/u.test(source[index + 1]!)) index++;
  }
  return -1;
}

/**
 * Return the end of the comment, processing instruction, declaration or CDATA section that starts at `open`. Return
 * `open` if none of these starts there.
 */
function skipNonTag(source: string, open: number, listener: Listener, mayBeDoctype: boolean): number {
  if (source.startsWith("<!--", open)) return endAfter(source, "-->", open + 4);
  if (source.startsWith("<?", open)) return endAfter(source, ">", open);
  if (source.startsWith("<![CDATA[", open)) {
    const end = endAfter(source, "]]>", open);
    listener.text(source.slice(open + 9, end).replace(/\]\]>$/u, ""), true);
    return end;
  }
  if (!source.startsWith("<!", open)) return open;
  const doctype = mayBeDoctype && matchAt(DOCTYPE, source, open);
  return doctype ? open + doctype[0].length : endAfter(source, ">", open);
}

function endAfter(source: string, terminator: string, from: number): number {
  const index = source.indexOf(terminator, from);
  return index < 0 ? source.length : index + terminator.length;
}

function skipRaw(source: string, from: number, name: string, listener: Listener): number {
  RAW_END.lastIndex = from;
  let match = RAW_END.exec(source);
  while (match && match[1]!.toLowerCase() !== name.toLowerCase()) match = RAW_END.exec(source);
  const end = match?.index ?? source.length;
  if (end > from) listener.text(source.slice(from, end), false);
  return end;
}

function matchAt(pattern: RegExp, source: string, index: number): RegExpExecArray | null {
  pattern.lastIndex = index;
  return pattern.exec(source);
}

/** Yield the attributes of a tag. Character references in the values are not decoded. */
export function* attributesOf(tag: string): Generator<[name: string, value: string]> {
  for (const [, name, doubleQuoted, singleQuoted, unquoted] of tag.matchAll(ATTRIBUTE))
    yield [name!, doubleQuoted ?? singleQuoted ?? unquoted ?? ""];
}
