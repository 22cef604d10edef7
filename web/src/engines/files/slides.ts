/** PPTX, in reading order: a slide, also a hidden one, is a page and its title the section. A hidden shape is not read. */

import { Archive } from "./archive.ts";
import { part, PPTX, type Part, type Read } from "./parsed.ts";
import { byId, byType, relationsOf } from "./relations.ts";
import { elements, every, find, letters, type XmlNode } from "./xml.ts";

const MAIN = "ppt/presentation.xml";
const UNSAID = new Set(["pres", "parTrans", "sibTrans"]); // how a diagram is drawn
const DEPTH = 20; // of groups within groups

export function parse(data: Uint8Array): Read {
  const archive = new Archive(data);
  const relations = relationsOf(archive, MAIN);
  const list = find(archive.xml(MAIN), "p:sldIdLst");
  const places = (list ? elements(list) : []).map((slide) => byId(relations, slide.attributes.get("r:id")));
  const parts = places.map((place, at) => slideOf(archive, place, at + 1));
  return { mimeType: PPTX, parts, pageCount: parts.length };
}

function slideOf(archive: Archive, place: string, page: number): Part {
  const tree = find(archive.xml(place), "p:cSld", "p:spTree");
  const shapes = shapesOf(tree);
  const relations = relationsOf(archive, place);
  const related = (id: string | undefined) => {
    const place = relations.find((one) => one.id === id)?.place;
    return place && archive.has(place) ? archive.xml(place) : undefined;
  };
  const texts = shapes.flatMap((shape) => textsOf(shape, 0, related));
  const notes = byType(relations, "notesSlide")[0];
  if (notes) texts.push(notesOf(archive.xml(notes)));
  const title = shapes.find(
    (shape) => placeholder(shape)?.attributes.get("idx") === undefined && placeholder(shape),
  );
  const section = title && frameOf(title).trim();
  return part(texts.filter((text) => text.trim()).join("\n\n"), { page, section: section || undefined });
}

/** What is drawn in one way by newer programs and in another by older ones is there once; what is hidden, not. */
function shapesOf(tree: XmlNode | undefined): XmlNode[] {
  const shapes = (tree ? elements(tree) : []).flatMap((shape) =>
    shape.name === "mc:AlternateContent" ? shapesOf(find(shape, "mc:Choice")) : [shape],
  );
  return shapes.filter((shape) => {
    const about = elements(shape).map((child) => find(child, "p:cNvPr"))[0];
    return !["1", "true"].includes(about?.attributes.get("hidden") ?? "");
  });
}

function notesOf(notes: XmlNode): string {
  const bodies = [...every(notes, "p:sp")].filter(
    (shape) => placeholder(shape)?.attributes.get("type") === "body",
  );
  return bodies[0] ? frameOf(bodies[0]) : "";
}

function placeholder(shape: XmlNode): XmlNode | undefined {
  return find(shape, "p:nvSpPr", "p:nvPr", "p:ph");
}

type Related = (id: string | undefined) => XmlNode | undefined;

function textsOf(shape: XmlNode, depth: number, related: Related): string[] {
  if (shape.name === "p:sp") return [frameOf(shape)];
  if (shape.name === "p:grpSp" && depth < DEPTH)
    return shapesOf(shape).flatMap((inner) => textsOf(inner, depth + 1, related));
  const data = find(shape, "a:graphic", "a:graphicData");
  const [table, drawn] = [find(data, "a:tbl"), find(data, "c:chart")];
  if (drawn) return [chartOf(related(drawn.attributes.get("r:id")))];
  const diagram = find(data, "relIds");
  if (diagram) return [diagramOf(related(diagram.attributes.get("r:dm")))];
  return table ? [[...every(table, "a:tr")].map(rowOf).join("\n")] : [];
}

/** What its points say, a paragraph a line. */
function diagramOf(root: XmlNode | undefined): string {
  const list = find(root, "ptLst");
  const points = (list ? elements(list) : []).filter(
    ({ name, attributes }) => name === "pt" && !UNSAID.has(attributes.get("type") ?? ""),
  );
  const paragraphs = points.flatMap((point) => elements(find(point, "t") ?? point));
  return paragraphs
    .filter(({ name }) => name === "a:p")
    .map((paragraph) => saidIn(paragraph, "a:t").join(""))
    .filter((said) => said.trim())
    .join("\n");
}

/** Its titles; then what it draws, as a table: a series is a line, below the names of its points. */
function chartOf(root: XmlNode | undefined): string {
  if (!root) return "";
  const lines = [...every(root, "c:title")].map((title) =>
    [...every(title, "a:p")].map((paragraph) => saidIn(paragraph, "a:t").join("")).join(" "),
  );
  let above = "";
  for (const series of every(root, "c:ser")) {
    const told = (name: string) => saidIn(find(series, name), "c:v");
    const either = (one: string, other: string) => (told(one).length > 0 ? told(one) : told(other));
    const points = ["", ...either("c:cat", "c:xVal")].join("\t");
    if (points && points !== above) lines.push(points);
    above = points || above;
    lines.push([told("c:tx").join(" "), ...either("c:val", "c:yVal")].join("\t"));
  }
  return lines.join("\n");
}

function saidIn(node: XmlNode | undefined, name: string): string[] {
  return node ? [...every(node, name)].map(letters) : [];
}

function rowOf(row: XmlNode): string {
  const cells = elements(row).filter(({ name }) => name === "a:tc");
  return cells.map((cell) => linesOf(find(cell, "a:txBody")).trim().replaceAll("\n", " ")).join("\t");
}

function frameOf(shape: XmlNode): string {
  return linesOf(find(shape, "p:txBody"));
}

function linesOf(body: XmlNode | undefined): string {
  const paragraphs = body ? elements(body).filter(({ name }) => name === "a:p") : [];
  return paragraphs.map((paragraph) => elements(paragraph).map(runOf).join("")).join("\n");
}

function runOf(run: XmlNode): string {
  return run.name === "a:br" ? "\v" : letters(find(run, "a:t"));
}
