/** Parse PPTX. Each slide, even a hidden one, is a page, and its title is the section. Hidden shapes are skipped. */

import { Archive } from "./zip_container.ts";
import { Graphics } from "./charts.ts";
import { part, PPTX, type Parsed, type Part } from "../../result.ts";
import { byId, byType, mainOf, relationsOf } from "./package.ts";
import { elements, every, find, ownText, type XmlNode } from "../../markup/xml.ts";

const MAIN = "ppt/presentation.xml";
/** Maximum depth of nested groups of shapes. Deeper groups are skipped. */
const DEPTH_MAX = 20;

export function parse(data: Uint8Array): Parsed {
  const archive = new Archive(data);
  const main = mainOf(archive, MAIN);
  const relations = relationsOf(archive, main);
  const list = find(archive.xml(main), "p:sldIdLst");
  const slides = (list ? elements(list) : []).map((slide) => byId(relations, slide.attributes.get("r:id")));
  const graphics = new Graphics(archive);
  const parts = slides.map((slide, index) => slideOf(archive, graphics, slide, index + 1));
  return { mimeType: PPTX, parts, pageCount: parts.length };
}

function slideOf(archive: Archive, graphics: Graphics, member: string, page: number): Part {
  const tree = find(archive.xml(member), "p:cSld", "p:spTree");
  const shapes = shapesOf(tree);
  const relations = relationsOf(archive, member);
  const linesOf: LinesOf = (graphic) => graphics.lines(graphic, relations);
  const texts = shapes.flatMap((shape) => textsOf(shape, 0, linesOf));
  const notes = archive.optionalXml(byType(relations, "notesSlide"));
  if (notes) texts.push(notesOf(notes));
  const title = shapes.find(
    (shape) => placeholder(shape)?.attributes.get("idx") === undefined && placeholder(shape),
  );
  const section = title && frameOf(title).trim();
  return part(texts.filter((text) => text.trim()).join("\n\n"), { page, section: section || undefined });
}

/** Return the visible shapes. Of alternatives for newer and older programs, return only those for newer ones. */
function shapesOf(tree: XmlNode | undefined): XmlNode[] {
  const shapes = (tree ? elements(tree) : []).flatMap((shape) =>
    shape.name === "mc:AlternateContent" ? shapesOf(find(shape, "mc:Choice")) : [shape],
  );
  return shapes.filter((shape) => {
    const properties = elements(shape).map((child) => find(child, "p:cNvPr"))[0];
    return !["1", "true"].includes(properties?.attributes.get("hidden") ?? "");
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

/** Function that returns the lines of text of a chart or diagram. */
type LinesOf = (graphic: XmlNode | undefined) => string[];

function textsOf(shape: XmlNode, depth: number, linesOf: LinesOf): string[] {
  if (shape.name === "p:sp") return [frameOf(shape)];
  if (shape.name === "p:grpSp" && depth < DEPTH_MAX)
    return shapesOf(shape).flatMap((inner) => textsOf(inner, depth + 1, linesOf));
  const data = find(shape, "a:graphic", "a:graphicData");
  const table = find(data, "a:tbl");
  return [(table ? [...every(table, "a:tr")].map(rowOf) : linesOf(data)).join("\n")];
}

function rowOf(row: XmlNode): string {
  const cells = elements(row).filter(({ name }) => name === "a:tc");
  return cells.map((cell) => paragraphsOf(find(cell, "a:txBody")).trim().replaceAll("\n", " ")).join("\t");
}

function frameOf(shape: XmlNode): string {
  return paragraphsOf(find(shape, "p:txBody"));
}

function paragraphsOf(body: XmlNode | undefined): string {
  const paragraphs = body ? elements(body).filter(({ name }) => name === "a:p") : [];
  return paragraphs.map((paragraph) => elements(paragraph).map(runOf).join("")).join("\n");
}

function runOf(run: XmlNode): string {
  return run.name === "a:br" ? "\v" : ownText(find(run, "a:t"));
}
