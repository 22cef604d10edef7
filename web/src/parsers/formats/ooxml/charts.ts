/** Extract the text of charts and diagrams in an Office file. A chart becomes a table below its titles. */

import type { Archive } from "./zip_container.ts";
import type { Relation } from "./package.ts";
import { elements, every, find, ownText, type XmlNode } from "../../markup/xml.ts";

const LAYOUT_POINTS = new Set(["pres", "parTrans", "sibTrans"]); // points of a diagram without text

/** The charts and diagrams of a file. Each is parsed once, however often it is displayed. */
export class Graphics {
  readonly #archive: Archive;
  readonly #lines = new Map<string, string[]>();

  constructor(archive: Archive) {
    this.#archive = archive;
  }

  /**
   * Return the text of an `a:graphicData`, none for a picture. `relations` belong to the member that contains
   * it.
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

/** Return one line per paragraph. */
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

/** Return one line per series, below the names of its points. */
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
