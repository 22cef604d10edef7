/** What is drawn in an Office file, as lines of text: a chart is a table below its titles, a diagram what its points say. */

import type { Archive } from "./zip_container.ts";
import type { Relation } from "./package.ts";
import { elements, every, find, letters, type XmlNode } from "../../markup/xml.ts";

const UNSAID = new Set(["pres", "parTrans", "sibTrans"]); // how a diagram is drawn

/** The charts and diagrams of one file. Each is read once, however often it is shown. */
export class Drawn {
  readonly #archive: Archive;
  readonly #lines = new Map<string, string[]>();

  constructor(archive: Archive) {
    this.#archive = archive;
  }

  /** What an `a:graphicData` shows, by the relations of the member in which it stands. None: a picture, or lost. */
  lines(graphic: XmlNode | undefined, relations: readonly Relation[]): string[] {
    const [chart, diagram] = [find(graphic, "c:chart"), find(graphic, "relIds")];
    const id = chart ? chart.attributes.get("r:id") : diagram?.attributes.get("r:dm");
    const place = relations.find((relation) => relation.id === id)?.place;
    if ((!chart && !diagram) || !place) return [];
    if (!this.#lines.has(place)) {
      const root = this.#archive.optionalXml([place]);
      this.#lines.set(place, root ? (chart ? chartOf : diagramOf)(root) : []);
    }
    return this.#lines.get(place)!;
  }
}

/** A paragraph a line. */
function diagramOf(root: XmlNode): string[] {
  const list = find(root, "ptLst");
  const points = (list ? elements(list) : []).filter(
    ({ name, attributes }) => name === "pt" && !UNSAID.has(attributes.get("type") ?? ""),
  );
  const paragraphs = points.flatMap((point) => elements(find(point, "t") ?? point));
  return paragraphs
    .filter(({ name }) => name === "a:p")
    .map((paragraph) => saidIn(paragraph, "a:t").join(""))
    .filter((said) => said.trim());
}

/** A series is a line, below the names of its points. */
function chartOf(root: XmlNode): string[] {
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
  return lines;
}

function saidIn(node: XmlNode | undefined, name: string): string[] {
  return node ? [...every(node, name)].map(letters) : [];
}
