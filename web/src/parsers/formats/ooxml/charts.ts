/** Extract the text of charts and diagrams in an Office file. A chart becomes its titles, followed by a table. */

import type { Archive } from "./zip_container.ts";
import type { Relation } from "./package.ts";
import { elements, every, find, ownText, type XmlNode } from "../../markup/xml.ts";

/** Types of points in a diagram that only lay it out and have no text of the user. */
const LAYOUT_POINTS = new Set(["pres", "parTrans", "sibTrans"]);

/** The charts and diagrams of a file. Each is parsed only once, even if the file displays it several times. */
export class Graphics {
  readonly #archive: Archive;
  readonly #lines = new Map<string, string[]>();

  constructor(archive: Archive) {
    this.#archive = archive;
  }

  /**
   * Return the lines of text of an `a:graphicData` element. A picture has no lines. `relations` are those of the member
   * that contains the element.
   */
  lines(graphic: XmlNode | undefined, relations: readonly Relation[]): string[] {
    const [chart, diagram] = [find(graphic, "c:chart"), find(graphic, "relIds")];
    const id = chart ? chart.attributes.get("r:id") : diagram?.attributes.get("r:dm");
    const target = relations.find((relation) => relation.id === id)?.target;
    if ((!chart && !diagram) || !target) return [];
    if (!this.#lines.has(target)) {
      const root = this.#archive.optionalXml([target]);
      this.#lines.set(target, root ? (chart ? chartLines : diagramLines)(root) : []);
    }
    return this.#lines.get(target)!;
  }
}

/** Return one line per paragraph of a diagram. */
function diagramLines(root: XmlNode): string[] {
  const list = find(root, "ptLst");
  const points = (list ? elements(list) : []).filter(
    ({ name, attributes }) => name === "pt" && !LAYOUT_POINTS.has(attributes.get("type") ?? ""),
  );
  const paragraphs = points.flatMap((point) => elements(find(point, "t") ?? point));
  return paragraphs
    .filter(({ name }) => name === "a:p")
    .map((paragraph) => textsIn(paragraph, "a:t").join(""))
    .filter((text) => text.trim());
}

/** Return the titles of a chart, then one line per series. A line with the names of the points precedes the series. */
function chartLines(root: XmlNode): string[] {
  const lines = [...every(root, "c:title")].map((title) =>
    [...every(title, "a:p")].map((paragraph) => textsIn(paragraph, "a:t").join("")).join(" "),
  );
  let header = "";
  for (const series of every(root, "c:ser")) {
    const values = (name: string) => textsIn(find(series, name), "c:v");
    const either = (first: string, second: string) =>
      values(first).length > 0 ? values(first) : values(second);
    const points = ["", ...either("c:cat", "c:xVal")].join("\t");
    if (points && points !== header) lines.push(points);
    header = points || header;
    lines.push([values("c:tx").join(" "), ...either("c:val", "c:yVal")].join("\t"));
  }
  return lines;
}

function textsIn(node: XmlNode | undefined, name: string): string[] {
  return node ? [...every(node, name)].map(ownText) : [];
}
