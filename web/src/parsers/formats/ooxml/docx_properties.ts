/** What Word says about a paragraph, a run, a style or a level: elements with a value. */

import { find, type XmlNode } from "../../markup/xml.ts";

/** Empty if there is none. */
export function value(node: XmlNode | undefined, ...path: string[]): string {
  return find(node, ...path)?.attributes.get("w:val") ?? "";
}

/** Whether a property is on; undefined if nothing is said of it. */
export function isOn(properties: XmlNode | undefined, name: string): boolean | undefined {
  const found = find(properties, name);
  return found && !["0", "false", "off"].includes(found.attributes.get("w:val") ?? "");
}
