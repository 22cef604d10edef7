/** Where the tags of HTML or XML begin and end. What they mean, and whether they match, is for the listener. */

export interface Listener {
  start(name: string, attributes: string, closed: boolean): void;
  end(name: string): void;
  /** `literal`: no entities stand in it. */
  text(text: string, literal: boolean): void;
}

const TAG = /<(\/?)([a-z_][^\s/>]*)/iuy;
const BLANK = /\s/u;
const DOCTYPE = /<!doctype[^>[]*(?:\[[^\]]*\]\s*)?>/iuy;
const RAW_END = /<\/([a-z]+)(?![\w-])/giu;
const ATTRIBUTE = /([^\s=/"'<>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/gu;

/** `raw`: names of the elements in which there are no tags. */
export function scan(source: string, listener: Listener, raw: ReadonlySet<string> = new Set()): void {
  const last = source.lastIndexOf(">"); // behind it no tag ends, so none need be looked for
  let at = 0;
  let mayDeclare = true; // a document type, which may be long, before all others that are none
  let isSound = true; // until a tag has no end
  while (at < source.length) {
    const open = source.indexOf("<", at);
    if (open < 0 || open > last) break;
    if (open > at) listener.text(source.slice(at, open), false);
    const special = skip(source, open, listener, mayDeclare);
    mayDeclare &&= !source.startsWith("<!", open) || source.startsWith("<!--", open);
    if (special > open) {
      at = special;
      continue;
    }
    const found = matchAt(TAG, source, open);
    if (!found) {
      listener.text("<", true);
      at = open + 1;
      continue;
    }
    const [whole, slash, name] = found as unknown as [string, string, string];
    let end: number = isSound ? endOfTag(source, open + whole.length) : -1;
    isSound &&= end >= 0;
    if (!isSound) end = source.indexOf(">", open);
    const attributes = source.slice(open + whole.length, end);
    at = end + 1;
    if (slash) {
      listener.end(name);
      continue;
    }
    const closed = attributes.endsWith("/");
    listener.start(name, attributes, closed);
    if (!closed && raw.has(name.toLowerCase())) at = passRaw(source, at, name, listener);
  }
  if (at < source.length) listener.text(source.slice(at), false);
}

/**
 * Where the ">" is that stands in no value, -1 if there is none. A quotation mark begins a value only behind a "=", and if
 * it has a partner: elsewhere it is a letter, and what stands between two such tags is text.
 */
function endOfTag(source: string, from: number): number {
  for (let at = from; at < source.length; at++) {
    if (source[at] === ">") return at;
    if (source[at] !== "=") continue;
    while (BLANK.test(source[at + 1] ?? "")) at++;
    const mark = source[at + 1];
    if (mark === '"' || mark === "'") at = Math.max(at + 1, source.indexOf(mark, at + 2));
    else while (at + 1 < source.length && mark !== ">" && !/[\s>]/u.test(source[at + 1]!)) at++;
  }
  return -1;
}

/** Past a remark, an instruction, a document type or CDATA; `open`, if there is none. */
function skip(source: string, open: number, listener: Listener, mayDeclare: boolean): number {
  if (source.startsWith("<!--", open)) return past(source, "-->", open + 4);
  if (source.startsWith("<?", open)) return past(source, ">", open);
  if (source.startsWith("<![CDATA[", open)) {
    const end = past(source, "]]>", open);
    listener.text(source.slice(open + 9, end).replace(/\]\]>$/u, ""), true);
    return end;
  }
  if (!source.startsWith("<!", open)) return open;
  const declared = mayDeclare && matchAt(DOCTYPE, source, open);
  return declared ? open + declared[0].length : past(source, ">", open);
}

function past(source: string, mark: string, from: number): number {
  const found = source.indexOf(mark, from);
  return found < 0 ? source.length : found + mark.length;
}

function passRaw(source: string, from: number, name: string, listener: Listener): number {
  RAW_END.lastIndex = from;
  let found = RAW_END.exec(source);
  while (found && found[1]!.toLowerCase() !== name.toLowerCase()) found = RAW_END.exec(source);
  const end = found?.index ?? source.length;
  if (end > from) listener.text(source.slice(from, end), false);
  return end;
}

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

/** The attributes of a tag, as they are written. */
export function* attributesOf(written: string): Generator<[name: string, value: string]> {
  for (const [, name, double, single, bare] of written.matchAll(ATTRIBUTE))
    yield [name!, double ?? single ?? bare ?? ""];
}
